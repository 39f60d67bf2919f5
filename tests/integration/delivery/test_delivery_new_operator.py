"""`quarterdeck new operator`: the project that it writes passes its own tests and comes up."""

import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.delivery.test_delivery_own_distribution import packages, pip_settings
from tests.integration.pods import needs_bubblewrap
from tests.places import ROOT

from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.testing.waiting import eventually

pytestmark = [pytest.mark.slow, needs_bubblewrap]

LIMIT = 200


@pytest.fixture
def variables(tmp_path: Path, control_plane_binaries: Binaries) -> dict[str, str]:
    """The environment of somebody who has nothing but Quarterdeck."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, path in control_plane_binaries.paths.items():
        (programs / name).symlink_to(path)
    home = tmp_path / "home"
    home.mkdir()
    # Not those of the tests around: the project has tests, and a `make`, of its own.
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "MAKE", "MFLAGS", "XDG_"))
    }
    return kept | {"HOME": str(home), "KUBEBUILDER_ASSETS": str(programs)}


@pytest.fixture
def project(tmp_path: Path, variables: dict[str, str]) -> Iterator[Path]:
    """A new project, whose environment has the libraries of this one."""
    place = tmp_path / "website-operator"
    run(tmp_path, variables, sys.executable, "-m", "quarterdeck", "new", "operator", "website")
    set_up(place, variables)
    yield place
    run(place, variables, "make", "down")


def run(
    directory: Path, variables: dict[str, str], *words: str
) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        words,
        cwd=directory,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def set_up(place: Path, variables: dict[str, str]) -> None:
    """Do what `make setup` does, without a network: all that it would fetch is here."""
    environment = place / ".venv"
    run(place, variables, sys.executable, "-m", "venv", "--without-pip", str(environment))
    found = [str(ROOT / "src"), sysconfig.get_path("purelib")]
    (packages(environment) / "libraries.pth").write_text("\n".join(found))
    pip = str(Path(sys.executable).with_name("pip"))
    run(place, variables | pip_settings(environment), pip, "install", "--quiet", "--editable", ".")
    for program in ("mypy", "pytest", "quarterdeck"):
        script = environment / "bin" / program
        script.write_text(f'#!/bin/sh\nexec "${{0%/*}}/python" -m {program} "$@"\n')
        script.chmod(0o755)
    (environment / "bin" / "ruff").symlink_to(Path(sys.executable).with_name("ruff"))
    (environment / "ready").write_text(f"{place}\n")


def test_a_new_project_passes_its_tests_and_comes_up(
    project: Path, variables: dict[str, str]
) -> None:
    tested = run(project, variables, "make", "test")
    assert "5 passed" in tested.stdout
    kubectl = (".venv/bin/quarterdeck", "local", "kubectl", "--name", "website")
    get = (*kubectl, "get", "configmap", "hello", "--ignore-not-found")
    log = project / "up.log"
    with log.open("wb") as output:
        up = subprocess.Popen(
            ["make", "up"],
            cwd=project,
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        eventually(lambda: "Ctrl-C stops" in log.read_text(), f"it is up; see {log}", LIMIT)
        run(project, variables, *kubectl, "apply", "--filename", "example.yaml")
        wanted = (*get, "--output=jsonpath={.data.text}")
        eventually(
            lambda: run(project, variables, *wanted).stdout == "hi there", "the ConfigMap", LIMIT
        )
    finally:
        os.killpg(up.pid, signal.SIGINT)  # as a terminal does at Ctrl-C
        up.wait(LIMIT)
    assert "The operator of websites" in log.read_text()
