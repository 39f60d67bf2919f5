"""An operator of another distribution that is broken: told in a sentence, and in nobody's way."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.delivery.distributions import write_distribution

DECLARED = """
from quarterdeck.delivery.declaration import Declaration, Deployed

OPERATOR = Declaration(
    name="leaky",
    title="The leaky operator",
    setup="leaky.controller:setup",
    namespace="leaky",
    account="leaky-operator",
    delivery=Deployed(),
)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A distribution with two operators: one cannot be imported, one cannot be set up."""
    entries = {"sunk": "no_such_module:OPERATOR", "leaky": "leaky:OPERATOR"}
    write_distribution(tmp_path, "acme-operators", entries)
    (tmp_path / "leaky").mkdir()
    (tmp_path / "leaky" / "__init__.py").write_text(DECLARED)
    return os.environ | {"PYTHONPATH": str(tmp_path)}


def run(environment: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False
    )


def test_asked_for_by_name_it_says_why_it_is_not_there(environment: dict[str, str]) -> None:
    done = run(environment, "-m", "quarterdeck", "run", "--operator=sunk")
    assert done.returncode == 2
    assert "operator sunk of acme-operators is left out" in " ".join(done.stderr.split())


def test_it_keeps_no_other_from_running(environment: dict[str, str], tmp_path: Path) -> None:
    """The process goes on until it needs a cluster, and its log names the one that is missing."""
    words = ("run", "--all", "--log-format=json", f"--kubeconfig={tmp_path / 'none'}")
    done = run(environment, "-m", "quarterdeck", *words)
    first, *_, last = (json.loads(line) for line in done.stderr.splitlines())
    assert first["reason"].startswith("operator sunk of acme-operators is left out: no_such_module")
    assert str(tmp_path / "none") in last["reason"]


def test_nothing_is_written_of_one_that_cannot_be_set_up(
    environment: dict[str, str], tmp_path: Path
) -> None:
    words = ("-m", "quarterdeck.delivery", str(tmp_path / "deploy"), "acme-operators")
    done = run(environment, *words)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "nothing is written, because of the operator leaky: it cannot be set up: "
        "ModuleNotFoundError: No module named 'leaky.controller'"
    )
    assert not (tmp_path / "deploy").exists()


@pytest.mark.parametrize(
    ("controller", "why"),
    [
        pytest.param(
            "def setup(manager):\n    manager.nothing()\n",
            "AttributeError: 'Manager' object has no attribute 'nothing' ({file}:2)",
            id="an error in setup",
        ),
        pytest.param(
            "def setup(manager, settings):\n    pass\n",
            "WrongSetup: {file}:1: it is called as setup(manager): take just that, or name its "
            "settings in `settings` of the declaration",
            id="settings that are not declared",
        ),
        pytest.param(
            "from quarterdeck.api.meta import CONFIG_MAPS\n\n\ndef setup(manager):\n"
            "    manager.objects(CONFIG_MAPS, writes=['update'])\n",
            "UnknownWrite: {file}:5: `writes` has 'update'; use some of ensure, create, patch, "
            "delete, prune, status, claim, finalizer",
            id="a write that does not exist",
        ),
    ],
)
def test_the_authors_file_and_line_are_named(
    environment: dict[str, str], tmp_path: Path, controller: str, why: str
) -> None:
    file = tmp_path / "leaky" / "controller.py"
    file.write_text(controller)
    done = run(environment, "-m", "quarterdeck.delivery", str(tmp_path / "d"), "acme-operators")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "nothing is written, because of the operator leaky: it cannot be set up: "
        + why.format(file=file)
    )


def test_a_cluster_operator_that_nobody_reports_is_told(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The manifests are written all the same."""
    more = 'cluster_operator="harbour",\n    delivery='
    (tmp_path / "leaky" / "__init__.py").write_text(DECLARED.replace("delivery=", more))
    (tmp_path / "leaky" / "controller.py").write_text("def setup(manager):\n    pass\n")
    done = run(environment, "-m", "quarterdeck.delivery", str(tmp_path / "d"), "acme-operators")
    assert done.returncode == 0
    assert 'add `Reporter(manager, "harbour", ...)` to setup' in done.stderr.splitlines()[-1]
    assert "leaky/deployment.yaml" in done.stdout.splitlines()


def test_several_distributions_give_one_payload(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "leaky" / "controller.py").write_text("def setup(manager):\n    pass\n")
    release = tmp_path / "release"
    words = ("-m", "quarterdeck.delivery", str(release), "quarterdeck", "acme-operators")
    done = run(environment, *words)
    assert done.returncode == 0, done.stderr
    ours, theirs = "payload/0000_50_sample_03_deployment.yaml", "payload/0000_50_leaky_"
    written = done.stdout.splitlines()
    assert ours in written
    assert any(name.startswith(theirs) for name in written)
    assert "image-references" in {path.name for path in (release / "payload").iterdir()}
    checked = run(environment, "-m", "quarterdeck", "payload", "lint", str(release / "payload"))
    assert checked.returncode == 0, checked.stdout


def test_a_release_of_a_local_cluster_is_made_without_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    program = (
        "from pathlib import Path\n"
        "from quarterdeck.localcluster.releases import write_releases\n"
        f"write_releases(Path({str(tmp_path / 'releases')!r}))"
    )
    done = run(environment, "-c", program)
    assert done.returncode == 0, done.stderr
    written = {path.name for path in (tmp_path / "releases" / "0.1.0").iterdir()}
    assert "0000_50_sample_03_deployment.yaml" in written
    assert not [name for name in written if "leaky" in name]
