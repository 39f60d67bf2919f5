"""Finding Quarterdeck's definitions, in a clone and in an installed package."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import quarterdeck
from quarterdeck.localcluster.definitions import definitions_directory, load_definitions

CLONE = Path(quarterdeck.__file__).parents[2]


def test_a_clones_definitions_are_found() -> None:
    names = {one["metadata"]["name"] for one in load_definitions(definitions_directory())}
    assert names >= {"clusteroperators.config.openshift.io", "clusterversions.config.openshift.io"}


def test_every_document_of_every_file_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("{kind: three}\n")
    (tmp_path / "a.yaml").write_text("{kind: one}\n---\n---\n{kind: two}\n")
    (tmp_path / "notes.txt").write_text("kind: none")
    assert [one["kind"] for one in load_definitions(tmp_path)] == ["one", "two", "three"]


@pytest.mark.skipif(not (CLONE / "pyproject.toml").exists(), reason="not in a clone")
def test_the_wheel_has_what_a_local_cluster_reads(tmp_path: Path) -> None:
    """Definitions, stages and pinned sources: what is no Python is easily forgotten."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=CLONE, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    wanted = [f"deploy/crds/{file.name}" for file in (CLONE / "deploy/crds").glob("*.yaml")]
    wanted += ["localcluster/manifests/stages.yaml", "py.typed"]
    assert {f"quarterdeck/{name}" for name in wanted} <= set(names)
    assert "quarterdeck/localcluster/binaries/gomodules/kubernetes/go.sum" in names
