"""`quarterdeck run --namespace A --namespace B`, with an account that has rights only there."""

from collections.abc import Iterator

import pytest
from msgspec import structs
from tests.objects import note

from quarterdeck.delivery.declaration import Deployed
from quarterdeck.delivery.manifests import account_objects, deployment
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.operators import find_operator
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.namespaces import create_namespace, delete_namespace
from quarterdeck.testing.operator_process import OwnOperators
from quarterdeck.testing.waiting import eventually


@pytest.fixture
def others(control_plane: ControlPlane, namespace: str) -> Iterator[tuple[str, str]]:
    """A second namespace that is watched, and one that is not."""
    names = (f"{namespace}-second", f"{namespace}-not")
    for name in names:
        create_namespace(control_plane.requests(), name)
    yield names
    for name in names:
        delete_namespace(control_plane, name)


@pytest.mark.usefixtures("crds", "clean_cluster")
def test_an_operator_of_two_namespaces_needs_rights_in_these_alone(
    control_plane: ControlPlane,
    namespace: str,
    others: tuple[str, str],
    own_operators: OwnOperators,
) -> None:
    """The roles and the options follow from the declaration; it asks for nothing elsewhere."""
    second, unwatched = others
    declared = structs.replace(
        find_operator("sample"),
        namespace=namespace,
        only_own_namespace=False,
        only_namespaces=(namespace, second),
        cluster_operator="",
    )
    objects = ApiObjects(control_plane.requests(), namespace)
    for obj in account_objects(declared):
        objects.apply(obj)
    assert isinstance(declared.delivery, Deployed)
    pod = deployment(declared, declared.delivery)["spec"]["template"]["spec"]
    arguments = [one for one in pod["containers"][0]["args"] if one.startswith("--namespace=")]
    assert arguments == [f"--namespace={namespace}", f"--namespace={second}"]
    account = control_plane.kubeconfig_for_service_account(namespace, declared.account)
    run = own_operators(control_plane, "sample", account=account)(*arguments)
    for place in (namespace, second, unwatched):
        objects.apply(note("hello", "hi", place))
    for place in (namespace, second):
        eventually(
            lambda: objects.find("configmap", "hello", namespace=place),  # noqa: B023
            f"the ConfigMap in {place}; see {run.log}",
        )
    eventually(lambda: run.get("/readyz")[0] == 200, "it is ready")
    assert objects.find("configmap", "hello", namespace=unwatched) is None
    assert not run.lines("list or watch failed, will try again")
