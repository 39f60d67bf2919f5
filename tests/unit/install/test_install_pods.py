"""What `quarterdeck install` says of pods that do not run."""

from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.install.pods import pod_trouble


def pod(name: str = "pilot", *, deleted: bool = False, **status: Any) -> Object:
    metadata = {"name": name, "namespace": "here"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "status": status}


def waits(reason: str, message: str = "", **more: Any) -> Object:
    return {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}} | more


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        pytest.param(pod(), "", id="a new one"),
        pytest.param(
            pod(containerStatuses=[{"name": "main", "state": {"running": {}}}]), "", id="it runs"
        ),
        pytest.param(pod(containerStatuses=[waits("ContainerCreating")]), "", id="it starts"),
        pytest.param(
            pod(containerStatuses=[waits("ImagePullBackOff", 'Back-off pulling image "x"')]),
            'pod here/pilot: ImagePullBackOff: Back-off pulling image "x"; check its name, and '
            "that the nodes can pull it",
            id="no image",
        ),
        pytest.param(
            pod(initContainerStatuses=[waits("CrashLoopBackOff")]),
            "pod here/pilot: CrashLoopBackOff; see: kubectl logs --namespace=here pilot "
            "--container=main --previous",
            id="it crashes",
        ),
        pytest.param(
            pod(containerStatuses=[waits("CreateContainerConfigError", "no Secret")]),
            "pod here/pilot: CreateContainerConfigError: no Secret; see: kubectl describe pod "
            "--namespace=here pilot",
            id="another reason",
        ),
        pytest.param(
            pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}]),
            "pod here/pilot: no node takes it: 0/3 nodes",
            id="no node",
        ),
        pytest.param(
            {**pod(), "spec": {"nodeName": "simulated", "containers": [{"image": "r.test/deck"}]}},
            "pod here/pilot: it is only simulated: a local cluster runs images that are named "
            "quarterdeck, quarterdeck-release or quarterdeck-router, not r.test/deck",
            id="simulated",
        ),
        pytest.param(pod(deleted=True, containerStatuses=[waits("Error")]), "", id="it goes"),
    ],
)
def test_the_reason_and_the_remedy_are_named(seen: Object, told: str) -> None:
    assert pod_trouble([pod("first"), seen]) == told
