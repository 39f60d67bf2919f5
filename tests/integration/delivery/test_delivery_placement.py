"""Where the scheduler puts the pods of a declared Deployment. On a real control plane."""

from tests.objects import metadata

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, Deployed
from quarterdeck.delivery.manifests import deployment
from quarterdeck.delivery.placement import CONTROL_PLANE, CONTROL_PLANE_ROLES, NodeLabel
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.waiting import eventually

NODE_CRITICAL = 2_000_001_000
"""The value of the PriorityClass `system-node-critical`."""
NOWHERE = (NodeLabel("test.example.com/disk", ("none",)),)


def delivered(namespace: str, account: str, delivery: Deployed) -> Object:
    declared = Declaration(
        name="mine",
        title="Mine",
        setup="mine:setup",
        namespace=namespace,
        account=account,
        delivery=delivery,
    )
    return deployment(declared, delivery)


def test_a_pod_gets_its_priority_and_nodes_and_waits_for_those_that_it_needs(
    control_plane: ControlPlane, namespace: str
) -> None:
    objects = ApiObjects(control_plane.requests(), namespace)
    placed = Deployed(
        image="example.test/mine:1",
        replicas=1,
        priority_class="system-node-critical",
        preferred_nodes=NOWHERE,
        required_nodes=CONTROL_PLANE,
        tolerated_taints=CONTROL_PLANE_ROLES,
        cpu="50m",
    )
    stuck = Deployed(image="example.test/mine:1", replicas=1, required_nodes=NOWHERE)
    for account, delivery in (("placed", placed), ("stuck", stuck)):
        objects.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(account, namespace)}
        )
        objects.apply(delivered(namespace, account, delivery))

    def scheduled(account: str, status: str) -> Object | None:
        for pod in objects.list("pods", f"app={account}"):
            for condition in pod.get("status", {}).get("conditions", ()):
                if (condition["type"], condition["status"]) == ("PodScheduled", status):
                    return pod
        return None

    pod = eventually(lambda: scheduled("placed", "True"), "the pod has a node")
    assert pod["spec"]["priority"] == NODE_CRITICAL
    labels = objects.get("node", pod["spec"]["nodeName"])["metadata"]["labels"]
    assert CONTROL_PLANE_ROLES[0] in labels
    waiting = eventually(lambda: scheduled("stuck", "False"), "no node fits the other pod")
    assert "nodeName" not in waiting["spec"]
