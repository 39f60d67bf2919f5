"""Owned objects go with their owner at once, also those of a kind that was installed just now."""

from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.definition import definition
from quarterdeck.api.meta import TypedObject, always
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.kinds import install_kinds
from quarterdeck.testing.waiting import eventually

LOOKS_FOR_NEW_KINDS = 30.0
"""The interval of a garbage collector that runs already; with it, clean-up takes as long."""


class Latecomer(TypedObject):
    """A kind of which the control plane has not heard."""

    api_version: str = always("tests.quarterdeck.dev/v1")
    kind: str = always("Latecomer")


LATECOMERS = CustomResource(
    group="tests.quarterdeck.dev",
    version="v1",
    kind="Latecomer",
    plural="latecomers",
    namespaced=True,
    type=Latecomer,
)


def test_the_garbage_collector_knows_a_kind_that_comes_late(
    control_plane: ControlPlane, namespace: str
) -> None:
    manager = control_plane.processes["kube-controller-manager"]
    objects = ApiObjects(control_plane.requests(), namespace)
    before = manager.pid
    install_kinds(control_plane, [definition(LATECOMERS)])
    try:
        assert manager.pid != before  # one that starts knows all kinds
        metadata = {"name": "one", "namespace": namespace}
        wanted = {"apiVersion": LATECOMERS.api_version, "kind": "Latecomer", "metadata": metadata}
        owner = objects.apply(wanted)
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": "Latecomer",
            "name": "one",
            "uid": owner["metadata"]["uid"],
        }
        owned = {**metadata, "ownerReferences": [reference]}
        objects.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": owned})
        objects.delete("latecomer", "one")
        eventually(
            lambda: objects.find("configmap", "one") is None,
            "the owned object is gone",
            LOOKS_FOR_NEW_KINDS / 2,
        )
        before = manager.pid
        install_kinds(control_plane, [definition(LATECOMERS)])  # nothing is new now
        assert manager.pid == before
    finally:
        objects.delete("customresourcedefinition", LATECOMERS.crd_name)
