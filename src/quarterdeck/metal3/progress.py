"""How far metal3's roll-out is, from its Deployment and its pods. Pure.

The Deployment's own controller counts the time without progress (`progressDeadlineSeconds`), so
nothing about it is kept in an operator's memory.
"""

from collections.abc import Iterable, Iterator

from quarterdeck.api.meta import Object
from quarterdeck.controller.metadata import controller_of
from quarterdeck.metal3.names import DEPLOYMENT
from quarterdeck.metal3.state import Reason, State
from quarterdeck.status import rollout

APPLYING = "Applying metal3 resources"
RUNNING = "metal3 pod is running"
CRASH_LOOP = "CrashLoopBackOff"


def progress(
    deployment: Object, pods: Iterable[Object], *, ran_with: Object | None = None
) -> State:
    """The state of the roll-out; `ran_with` is the spec with which it was last complete."""
    if deployment["spec"] == ran_with:
        # Annotations raise the generation too: its controller has nothing to roll out.
        observed = {"generation": deployment["status"].get("observedGeneration", 0)}
        deployment = {**deployment, "metadata": {**deployment["metadata"], **observed}}
    if crashing := sorted(_crashing(pods)):
        what = ", ".join(crashing)
        return State(Reason.CRASH_LOOPING, f"{what}: restarting again and again; see its logs")
    match rollout.deployment(deployment):
        case rollout.Done():
            return State(Reason.COMPLETE, RUNNING)
        case rollout.Failed(message=message) if _deadline_exceeded(deployment):
            return State(Reason.TIMED_OUT, f"metal3 makes no progress: {message}")
        case rollout.Failed(message=message) | rollout.Waiting(message=message):
            return State(Reason.SYNCING, f"{APPLYING}: {message}")


def _crashing(pods: Iterable[Object]) -> Iterator[str]:
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp") or not _is_metal3s(pod):
            continue
        status = pod.get("status") or {}
        for field in ("initContainerStatuses", "containerStatuses"):
            for one in status.get(field) or ():
                waiting = (one.get("state") or {}).get("waiting") or {}
                if waiting.get("reason") == CRASH_LOOP:
                    yield f"container {one['name']}"


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
