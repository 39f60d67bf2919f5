"""Turns a wait without progress into a failure. Pure; the monotonic time is passed in.

A Deployment reports when it exceeds its progress deadline, but not if its controller does not run.
DaemonSets, StatefulSets and Jobs have no such deadline. So an object that makes no progress for too
long while a release is applied fails, until it makes progress. On a settled cluster it does not
fail: a missing node is no fault of the release. The times are in memory only, so a new process
counts from its start.
"""

from typing import NamedTuple

from quarterdeck.api.meta import Object
from quarterdeck.operators.cluster_version.sync.progress import Failed, Outcome, Waiting
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import ObjectIdentity

STANDSTILL_TIMEOUT = 600.0
"""Seconds; the default of a Deployment's progressDeadlineSeconds."""

WORKLOADS = frozenset({("apps", kind) for kind in ("Deployment", "DaemonSet", "StatefulSet")})
JOB = ("batch", "Job")


class Standstill(NamedTuple):
    """The message of a wait, and since when it has not changed."""

    said: str
    since: float


def timeout_for(
    identity: ObjectIdentity, live: Object, mode: Mode, timeout: float = STANDSTILL_TIMEOUT
) -> float | None:
    """For how many seconds the object may make no progress; None for no limit.

    A Job with a ready pod has no limit here; its author can set `activeDeadlineSeconds`.
    """
    what = (identity.group, identity.kind)
    if mode is Mode.RECONCILING:
        return None
    if what == JOB:
        return None if (live.get("status") or {}).get("ready") else timeout
    if what not in WORKLOADS:
        return None
    deadline = (live.get("spec") or {}).get("progressDeadlineSeconds") or 0
    return max(timeout, float(deadline))


def judge_wait(
    outcome: Outcome, before: Standstill | None, timeout: float | None, now: float
) -> tuple[Outcome, Standstill | None]:
    """The outcome, or a failure if the wait has not changed for too long; and the new state."""
    if not isinstance(outcome, Waiting) or timeout is None:
        return outcome, None
    if before is None or before.said != outcome.message:
        return outcome, Standstill(outcome.message, now)
    if now - before.since < timeout:
        return outcome, before
    span = f"{timeout / 60:.0f} minutes" if timeout >= 120 else f"{timeout:.0f} seconds"
    remedy = f"nothing has changed for {span}; look at its pods and their events"
    return Failed(outcome.reason, f"{outcome.message}; {remedy}"), before
