"""Why a pod of ours does not run, and what to do about it. Pure."""

from collections.abc import Iterable

from quarterdeck.api.meta import Object
from quarterdeck.delivery.manifests import PART_OF

OUR_PODS = ",".join(f"{key}={value}" for key, value in PART_OF.items())
"""Selects the pods of all operators."""
_IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_SIMULATED = "simulated"
"""The node of a local cluster whose pods are objects only."""
_STARTING = ("ContainerCreating", "PodInitializing")


def pod_trouble(pods: Iterable[Object]) -> str:
    """What keeps the first of the pods with trouble from running; empty if none has any."""
    for pod in pods:
        if pod["metadata"].get("deletionTimestamp"):
            continue
        if why := _container_trouble(pod) or _unscheduled(pod) or _simulated(pod):
            name = f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"
            return f"pod {name}: {why}"
    return ""


def _container_trouble(pod: Object) -> str:
    status = pod.get("status") or {}
    for field in ("initContainerStatuses", "containerStatuses"):
        for one in status.get(field) or ():
            waiting = (one.get("state") or {}).get("waiting") or {}
            reason = str(waiting.get("reason") or "")
            if not reason or reason in _STARTING:
                continue
            said = ": ".join(part for part in (reason, str(waiting.get("message") or "")) if part)
            return f"{said}; {_remedy(reason, pod, one['name'])}"
    return ""


def _remedy(reason: str, pod: Object, container: str) -> str:
    metadata = pod["metadata"]
    at = f"--namespace={metadata.get('namespace')} {metadata['name']}"
    if reason in _IMAGE_REASONS:
        return "check its name, and that the nodes can pull it"
    if reason == "CrashLoopBackOff":
        return f"see: kubectl logs {at} --container={container} --previous"
    return f"see: kubectl describe pod {at}"


def _unscheduled(pod: Object) -> str:
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("status") == "False":
            return f"no node takes it: {one.get('message') or one.get('reason') or 'unknown'}"
    return ""


def _simulated(pod: Object) -> str:
    spec = pod.get("spec") or {}
    if spec.get("nodeName") != _SIMULATED:
        return ""
    images = ", ".join(str(one.get("image")) for one in spec.get("containers") or ())
    return (
        f"it is only simulated: a local cluster runs images that are named quarterdeck, "
        f"quarterdeck-release or quarterdeck-router, not {images}"
    )
