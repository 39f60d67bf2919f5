"""The files in deploy/crds."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.kubernetes_schemas import is_kubernetes_type
from tests.places import DEPLOY

from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.definition import definition, root_schema
from quarterdeck.api.definition_text import definition_text
from quarterdeck.api.kinds import KINDS
from quarterdeck.api.operator_v1alpha1 import CLUSTER_VERSION_OPERATORS

DIRECTORY = DEPLOY / "crds"


def test_the_files_in_the_repository_are_up_to_date() -> None:
    """What is committed is what the types say now."""
    committed = {path.name: path.read_text() for path in DIRECTORY.glob("*.yaml")}
    wanted = {f"{kind.crd_name}.yaml": definition_text(kind) for kind in KINDS}
    stale = sorted(
        name for name in committed.keys() | wanted.keys() if committed.get(name) != wanted.get(name)
    )
    assert not stale, f"deploy/crds is out of date ({', '.join(stale)}): run `make generate`"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.kind))
def test_a_file_reads_back_as_the_definition(kind: CustomResource[Any]) -> None:
    assert yaml.safe_load(definition_text(kind)) == definition(kind)


def described(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    if is_kubernetes_type(schema):
        return  # `kubectl explain pod` describes it.
    for name, below in schema.get("properties", {}).items():
        yield f"{path}.{name}", below.get("description", "")
        yield from described(below, f"{path}.{name}")
    items = schema.get("items", {})
    if "properties" in items and not is_kubernetes_type(items):
        yield f"{path}[]", schema["items"].get("description", "")
        yield from described(schema["items"], f"{path}[]")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.kind))
def test_every_kind_and_field_is_described(kind: CustomResource[Any]) -> None:
    """`kubectl explain` has something to say everywhere."""
    schema = root_schema(kind)
    silent = [
        path
        for path, text in [(kind.kind, schema["description"]), *described(schema, kind.kind)]
        # The API server describes metadata itself.
        if not text.endswith((".", "`")) and path != f"{kind.kind}.metadata"
    ]
    assert silent == []


def test_the_log_level_crd_is_for_self_managed_clusters_behind_its_gate() -> None:
    """A hosted cluster never gets it: its profile is not among the annotations."""
    assert definition(CLUSTER_VERSION_OPERATORS)["metadata"]["annotations"] == {
        "include.release.openshift.io/self-managed-high-availability": "true",
        "include.release.openshift.io/single-node-developer": "true",
        "release.openshift.io/feature-gate": "ClusterVersionOperatorConfiguration",
    }
