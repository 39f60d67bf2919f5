"""How far metal3's roll-out is, from its Deployment and its pods. Pure.

The Deployment's own controller counts the time without progress (`progressDeadlineSeconds`), so
nothing about it is kept in an operator's memory.

A container that crashes again and again runs between two crashes, and may even be ready. So it
counts as crashing until it has run for ten minutes, as for the kubelet, which then forgets it.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from quarterdeck.api.meta import Object
from quarterdeck.api.times import parse_time
from quarterdeck.controller.metadata import controller_of
from quarterdeck.metal3.names import DEPLOYMENT
from quarterdeck.metal3.state import State, StateReason
from quarterdeck.status import rollout

APPLYING = "Applying metal3 resources"
RUNNING = "metal3 pod is running"
CRASH_LOOP = "CrashLoopBackOff"
FORGOTTEN_AFTER = timedelta(minutes=10)
"""How long a container has to run before its crashes do not count any more."""
MANY_RESTARTS = 3


def progress(
    deployment: Object, pods: Iterable[Object], now: datetime, *, ran_with: Object | None = None
) -> State:
    """The state of the roll-out; `ran_with` is the spec with which it was last complete."""
    if deployment["spec"] == ran_with:
        # Annotations raise the generation too: its controller has nothing to roll out.
        observed = {"generation": deployment["status"].get("observedGeneration", 0)}
        deployment = {**deployment, "metadata": {**deployment["metadata"], **observed}}
    if crashing := dict(_crashing(pods, now)):
        what = ", ".join(f"container {name}" for name in sorted(crashing))
        message = f"{what}: restarting again and again; see its logs"
        return State(StateReason.CRASH_LOOPING, message, min(crashing.values()))
    match rollout.deployment(deployment):
        case rollout.Done():
            return State(StateReason.COMPLETE, RUNNING)
        case rollout.Failed(message=message) if _deadline_exceeded(deployment):
            return State(StateReason.TIMED_OUT, f"metal3 makes no progress: {message}")
        case rollout.Failed(message=message) | rollout.Waiting(message=message):
            return State(StateReason.SYNCING, f"{APPLYING}: {message}")


def _crashing(pods: Iterable[Object], now: datetime) -> Iterator[tuple[str, datetime]]:
    """The names of the containers that crash, and until when they count."""
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp") or not _is_metal3s(pod):
            continue
        status = pod.get("status") or {}
        for field in ("initContainerStatuses", "containerStatuses"):
            for one in status.get(field) or ():
                until = _crashes_until(one, now, ends=field == "initContainerStatuses")
                if until is not None and until > now:
                    yield one["name"], until


def _crashes_until(container: Object, now: datetime, *, ends: bool) -> datetime | None:
    """Until when the container counts as crashing; None if it does not. `ends` if it is to end."""
    state = container.get("state") or {}
    if (state.get("waiting") or {}).get("reason") == CRASH_LOOP:
        return now + FORGOTTEN_AFTER
    ended = state.get("terminated") or {}
    if container.get("restartCount", 0) < MANY_RESTARTS or (ends and ended.get("exitCode") == 0):
        return None
    crash = ended or (container.get("lastState") or {}).get("terminated") or {}
    started, finished = parse_time(crash.get("startedAt")), parse_time(crash.get("finishedAt"))
    if finished is None or (started is not None and finished - started >= FORGOTTEN_AFTER):
        return None
    return finished + FORGOTTEN_AFTER


def _is_metal3s(pod: Object) -> bool:
    """Whether the pod is one of the Deployment's: anybody can give a pod its labels."""
    owner = controller_of(pod)
    if owner is None:
        return False
    return owner.kind == "ReplicaSet" and owner.name.startswith(f"{DEPLOYMENT}-")


def _deadline_exceeded(deployment: Object) -> bool:
    conditions = (deployment.get("status") or {}).get("conditions") or ()
    return any(
        (one.get("type"), one.get("reason")) == ("Progressing", "ProgressDeadlineExceeded")
        for one in conditions
    )
