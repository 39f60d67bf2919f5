"""What an object lacks: told, or waited for if the payload brings it."""

from typing import Any

import pytest

from quarterdeck.api.meta import Key, Object
from quarterdeck.kube import NotFound
from quarterdeck.kube.errors import Status
from quarterdeck.operators.cluster_version.sync.lacking import (
    Provided,
    brings_others,
    without_kind,
    without_place,
)
from quarterdeck.operators.cluster_version.sync.progress import DONE, Failed, Waiting
from quarterdeck.payload.model import Manifest

NOTHING = Provided(())


def manifest(
    api_version: str, kind: str, annotations: Object | None = None, **rest: Any
) -> Manifest:
    metadata = {"name": "x", "annotations": annotations or {}}
    body = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}
    return Manifest(
        file="0000_10_a_1.yaml", document=1, line=1, run_level=10, component="a", object=body
    )


WHALE = manifest("example.test/v1", "Whale")
NAMESPACE = manifest("v1", "Namespace")
DEFINITION = manifest(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    spec={
        "group": "example.test",
        "names": {"kind": "Whale", "plural": "whales"},
        "scope": "Cluster",
        "versions": [{"name": "v1", "served": True}],
    },
)
BROKEN = manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", spec={"versions": None})


def not_found(message: str) -> NotFound:
    return NotFound("POST", "/x", Status(code=404, reason="NotFound", message=message))


def test_a_kind_that_nobody_brings_is_a_fault_with_a_remedy() -> None:
    missing = without_kind(WHALE, [], NOTHING)
    assert isinstance(missing, Failed)
    assert "install its definition" in missing.message
    old = without_kind(WHALE, ["v2", "v3"], NOTHING)
    assert "v2, v3" in old.message


def test_a_kind_that_the_payload_brings_is_waited_for() -> None:
    assert isinstance(without_kind(WHALE, [], Provided([WHALE, DEFINITION])), Waiting)
    assert isinstance(without_kind(WHALE, [], Provided([BROKEN])), Failed)


def test_what_is_to_be_deleted_is_gone_with_its_kind() -> None:
    gone = manifest("example.test/v1", "Whale", {"release.openshift.io/delete": "true"})
    assert without_kind(gone, [], NOTHING) == DONE


def test_a_namespace_is_waited_for_if_the_payload_brings_it() -> None:
    error = not_found('namespaces "x" not found')
    assert isinstance(without_place(Key("x", "y"), error, Provided([NAMESPACE])), Waiting)
    missing = without_place(Key("x", "y"), error, NOTHING)
    assert missing.reason == "NamespaceNotFound"
    assert "create namespace x" in missing.message


@pytest.mark.parametrize("namespace", ["", "x"])
def test_a_kind_that_has_just_gone_is_not_taken_for_a_namespace(namespace: str) -> None:
    error = not_found("the server could not find the requested resource")
    found = without_place(Key(namespace, "y"), error, Provided([NAMESPACE]))
    assert isinstance(found, Failed)
    assert found.reason == "KindUnknown"


def test_definitions_and_namespaces_bring_others() -> None:
    assert brings_others(DEFINITION.identity)
    assert brings_others(NAMESPACE.identity)
    assert not brings_others(WHALE.identity)
