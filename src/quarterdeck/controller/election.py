"""The decisions of leader election. Pure: the clock is passed in.

A candidate trusts only its own clock: a Lease has expired when *we* have seen it unchanged for its
duration, whatever times other machines wrote into it. A leader counts from the moment before it
sent its last successful renewal: it may write until `deadline` seconds later, and others may take
the Lease no earlier than `duration` seconds later. A request that is already sent must arrive
within the difference.

`lease.py` sends the requests.
"""

import math
from datetime import datetime
from typing import Literal

import msgspec

from quarterdeck.api.meta import LEASES, Object


class LeadershipLost(Exception):  # noqa: N818 - it is an end, not a fault
    """We are no longer the leader: the process must exit without another write."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The three times of an election, in seconds."""

    duration: float = 15.0
    """How long other replicas wait after the last renewal that they saw."""
    deadline: float = 10.0
    """How long the leader may write after its last successful renewal."""
    retry: float = 2.0
    """How often the leader renews the Lease and the other replicas read it."""

    def __post_init__(self) -> None:
        if not self.duration > self.deadline > self.retry > 0:
            raise ValueError(
                f"lease duration {self.duration:g} s, renew deadline {self.deadline:g} s, retry "
                f"{self.retry:g} s: each has to be longer than the next; the defaults are 15, 10, 2"
            )


class Wait(msgspec.Struct, frozen=True):
    """Another replica leads: read the Lease again later."""

    seconds: float
    holder: str


class WriteLease(msgspec.Struct, frozen=True):
    """WriteLease this Lease; if that succeeds, we lead."""

    lease: Object
    verb: Literal["create", "update"]


class Candidate:
    """One replica's view of the Lease, and until when it leads."""

    def __init__(self, *, namespace: str, name: str, identity: str, timing: Timing) -> None:
        self.namespace = namespace
        self.name = name
        self.identity = identity
        self.timing = timing
        self._seen: object = None
        self._seen_at = 0.0
        self._leads_until: float | None = None

    def look(self, lease: Object | None, *, now: float, wall: datetime) -> Wait | WriteLease:
        """What to do with the Lease as the server has it."""
        if lease is None:
            return WriteLease(self._claim(None, wall), "create")
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        mark = (lease["metadata"].get("uid"), lease["metadata"].get("resourceVersion"))
        if mark != self._seen:
            self._seen, self._seen_at = mark, now
        runs_out = self._seen_at + float(spec.get("leaseDurationSeconds") or 0)
        if holder in ("", self.identity) or now >= runs_out:
            return WriteLease(self._claim(lease, wall), "update")
        return Wait(min(self.timing.retry, runs_out - now), holder)

    def won(self, *, sent_at: float) -> None:
        """Record that we wrote the Lease, with a request sent at `sent_at`."""
        self._leads_until = sent_at + self.timing.deadline

    def resigned(self) -> None:
        """Record that we no longer lead."""
        self._leads_until = None

    def remaining(self, now: float) -> float:
        """How many more seconds this replica may write; 0 if it does not lead."""
        return 0.0 if self._leads_until is None else max(0.0, self._leads_until - now)

    def leads(self, now: float) -> bool:
        """Whether this replica may write now."""
        return self.remaining(now) > 0

    def released(self, lease: Object, wall: datetime) -> Object:
        """The Lease without a holder, so that the next leader need not wait."""
        spec = {
            **lease["spec"],
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": micro_time(wall),
        }
        return {**lease, "spec": spec}

    def _claim(self, lease: Object | None, wall: datetime) -> Object:
        """The Lease with us as its holder; fields that we do not know stay."""
        now = micro_time(wall)
        if lease is None:
            metadata: Object = {"namespace": self.namespace, "name": self.name}
            lease = {
                "apiVersion": LEASES.api_version,
                "kind": LEASES.kind,
                "metadata": metadata,
            }
        spec = dict(lease.get("spec") or {})
        if spec.get("holderIdentity") != self.identity:
            changed_hands = "leaseTransitions" in spec
            spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + changed_hands
            spec["acquireTime"] = now
        spec["holderIdentity"] = self.identity
        # The field holds whole seconds: rounded up, so that others wait long enough.
        spec["leaseDurationSeconds"] = math.ceil(self.timing.duration)
        spec["renewTime"] = now
        return {**lease, "spec": spec}


def micro_time(wall: datetime) -> str:
    """A time in the format of the API's MicroTime."""
    return wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
