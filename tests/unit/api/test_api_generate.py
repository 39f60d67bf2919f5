"""The files in deploy/crds, and the program that writes them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.places import DEPLOY

from quarterdeck.api import generate
from quarterdeck.api.custom_resource import CustomResource
from quarterdeck.api.definition import definition, root_schema
from quarterdeck.api.kinds import KINDS
from quarterdeck.api.operator_v1alpha1 import CLUSTER_VERSION_OPERATORS

DIRECTORY = DEPLOY / "crds"


def test_the_files_in_the_repository_are_up_to_date() -> None:
    """What is committed is what the types say now."""
    committed = {path.name: path.read_text() for path in DIRECTORY.glob("*.yaml")}
    wanted = generate.files()
    stale = sorted(
        name for name in committed.keys() | wanted.keys() if committed.get(name) != wanted.get(name)
    )
    assert not stale, f"deploy/crds is out of date ({', '.join(stale)}): run `make generate`"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: str(kind.kind))
def test_a_file_reads_back_as_the_definition(kind: CustomResource[Any]) -> None:
    text = generate.files()[f"{kind.crd_name}.yaml"]
    assert yaml.safe_load(text) == definition(kind)


def described(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name, below in schema.get("properties", {}).items():
        yield f"{path}.{name}", below.get("description", "")
        yield from described(below, f"{path}.{name}")
    if "properties" in schema.get("items", {}):
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


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    first = generate.write(tmp_path / "crds")
    assert sorted(first) == sorted(generate.files())
    assert generate.write(tmp_path / "crds") == []


def test_a_run_removes_what_it_wrote_for_a_kind_that_is_gone(tmp_path: Path) -> None:
    """Only its own files: one without the header stays."""
    generate.write(tmp_path)
    (tmp_path / "gone.example.com.yaml").write_text(generate.HEADER + "kind: X\n")
    (tmp_path / "foreign.yaml").write_text("kind: X\n")
    assert generate.write(tmp_path) == ["gone.example.com.yaml"]
    assert not (tmp_path / "gone.example.com.yaml").exists()
    assert (tmp_path / "foreign.yaml").exists()


def test_a_call_without_a_directory_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main([]) == 2
    assert "usage: python -m quarterdeck.api.generate DIRECTORY" in capsys.readouterr().err


def test_a_call_prints_what_it_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == list(generate.files())
