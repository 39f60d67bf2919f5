"""Who leads: the decisions of leader election, without I/O and with the clock passed in.

A candidate believes only its own clock: a Lease has run out when it has not changed for
its duration since *we* first saw it so, whatever times other machines wrote into it.
A leader counts from before it sent its last renewal that succeeded: it may write until
`deadline` seconds after that, and others may take the Lease no earlier than `duration`
seconds after it. The difference is the time that a request already sent has to arrive.

`lease.py` does the requests.
"""

import math
from datetime import datetime
from typing import Literal

import msgspec

from quarterdeck.api.meta import LEASES, Object


class LeadershipLost(Exception):  # noqa: N818 - it is an end, not a fault
    """We do not lead any more: the process has to exit without another write."""


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The three times of an election, in seconds."""

    duration: float = 15.0
    """How long others wait after the last renewal that they saw."""
    deadline: float = 10.0
    """How long the leader goes on after its last renewal that succeeded."""
    retry: float = 2.0
    """How often the leader renews and the others look."""

    def __post_init__(self) -> None:
        if not self.duration > self.deadline > self.retry > 0:
            raise ValueError(
                f"lease duration {self.duration:g} s, renew deadline {self.deadline:g} s, retry "
                f"{self.retry:g} s: each has to be longer than the next; the defaults are 15, 10, 2"
            )


class Wait(msgspec.Struct, frozen=True):
    """Somebody else leads: look again later."""

    seconds: float
    holder: str


class Write(msgspec.Struct, frozen=True):
    """Write this Lease; if that succeeds, we lead."""

    lease: Object
    verb: Literal["create", "update"]


class Candidate:
    """What one process knows about the Lease."""

    def __init__(self, *, namespace: str, name: str, identity: str, timing: Timing) -> None:
        self.namespace = namespace
        self.name = name
        self.identity = identity
        self.timing = timing
        self._seen: object = None
        self._seen_at = 0.0
        self._leads_until: float | None = None

    def look(self, lease: Object | None, *, now: float, wall: datetime) -> Wait | Write:
        """What to do about the Lease as it is on the server."""
        if lease is None:
            return Write(self._claim(None, wall), "create")
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        mark = (lease["metadata"].get("uid"), lease["metadata"].get("resourceVersion"))
        if mark != self._seen:
            self._seen, self._seen_at = mark, now
        runs_out = self._seen_at + float(spec.get("leaseDurationSeconds") or 0)
        if holder in ("", self.identity) or now >= runs_out:
            return Write(self._claim(lease, wall), "update")
        return Wait(min(self.timing.retry, runs_out - now), holder)

    def won(self, *, sent_at: float) -> None:
        """A Lease that names us was written by a request that was sent at that time."""
        self._leads_until = sent_at + self.timing.deadline

    def resigned(self) -> None:
        """We do not lead from now on."""
        self._leads_until = None

    def remaining(self, now: float) -> float:
        """For how many more seconds this process may write; 0 when it does not lead."""
        return 0.0 if self._leads_until is None else max(0.0, self._leads_until - now)

    def leads(self, now: float) -> bool:
        """Whether this process may write now."""
        return self.remaining(now) > 0

    def released(self, lease: Object, wall: datetime) -> Object:
        """The Lease with nobody on it, so that the next one need not wait."""
        spec = {
            **lease["spec"],
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": micro_time(wall),
        }
        return {**lease, "spec": spec}

    def _claim(self, lease: Object | None, wall: datetime) -> Object:
        """The Lease with us on it; everything that we do not know stays."""
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
        # Whole seconds is all the field can hold: rounding up keeps others waiting long enough.
        spec["leaseDurationSeconds"] = math.ceil(self.timing.duration)
        spec["renewTime"] = now
        return {**lease, "spec": spec}


def micro_time(wall: datetime) -> str:
    """A time as the API's MicroTime is written."""
    return wall.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
