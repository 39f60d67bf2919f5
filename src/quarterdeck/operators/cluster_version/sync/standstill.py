"""For how long something is waited for that does not move. Pure; the monotonic time is passed in.

A Deployment has a deadline for its progress and says when it is past it. DaemonSets, StatefulSets
and Jobs have none, and of a Deployment nobody says anything when its controller does not run. So
what stays the same for too long while a release is being applied is a failure, which goes away
when it moves. On a settled cluster it is none: there a node that is away is no matter of the
release. What was seen is in memory alone, so a process that is started anew waits from its start.
"""

from typing import NamedTuple

from quarterdeck.api.meta import Object
from quarterdeck.operators.cluster_version.sync.progress import Failed, Outcome, Waiting
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Identity

STANDSTILL_TIMEOUT = 600.0
"""Seconds; as long as a Deployment may take for its progress if it does not say."""

WORKLOADS = frozenset({("apps", kind) for kind in ("Deployment", "DaemonSet", "StatefulSet")})
JOB = ("batch", "Job")


class Standstill(NamedTuple):
    """What is waited for, in words that change when it moves, and since when they are the same."""

    said: str
    since: float


def timeout_for(
    identity: Identity, live: Object, mode: Mode, timeout: float = STANDSTILL_TIMEOUT
) -> float | None:
    """For how many seconds the object may stand still; None for as long as it takes.

    A Job that has a pod which is ready works, and only its author knows for how long: see its
    `activeDeadlineSeconds`.
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
    """The outcome, a failure if it has been the same wait for too long, and what to remember."""
    if not isinstance(outcome, Waiting) or timeout is None:
        return outcome, None
    if before is None or before.said != outcome.message:
        return outcome, Standstill(outcome.message, now)
    if now - before.since < timeout:
        return outcome, before
    span = f"{timeout / 60:.0f} minutes" if timeout >= 120 else f"{timeout:.0f} seconds"
    remedy = f"nothing has changed for {span}; look at its pods and their events"
    return Failed(outcome.reason, f"{outcome.message}; {remedy}"), before
