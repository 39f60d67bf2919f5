"""`make setup` of a new project: an interrupted, doubled or moved one leaves no broken environment.

Python is a script that notes each start, so the test needs no network: it tests the Makefile.
"""

import subprocess
from pathlib import Path

import pytest

from quarterdeck.scaffold.names import names_for
from quarterdeck.scaffold.write import project_files, write_project

PYTHON = """#!/bin/sh
echo started >> {log}
mkdir -p .venv/bin
printf '#!/bin/sh\\nsleep 0.3; [ ! -e {broken} ]\\n' > .venv/bin/pip
chmod +x .venv/bin/pip
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "website-operator"
    write_project(place, project_files(names_for("website"), "quarterdeck[testing]"))
    python = tmp_path / "python"
    python.write_text(PYTHON.format(log=tmp_path / "log", broken=tmp_path / "broken"))
    python.chmod(0o755)
    return place


def start(project: Path) -> "subprocess.Popen[bytes]":
    command = ["make", "--silent", "setup", f"PYTHON={project.parent / 'python'}"]
    return subprocess.Popen(command, cwd=project, stderr=subprocess.DEVNULL)


def starts(project: Path) -> int:
    return len((project.parent / "log").read_text().splitlines())


def test_it_is_set_up_once_also_by_two_at_once(project: Path) -> None:
    both = [start(project), start(project)]
    assert [one.wait(30) for one in both] == [0, 0]
    assert start(project).wait(30) == 0
    assert starts(project) == 1


def test_it_is_set_up_again_after_a_failure_and_after_a_move(project: Path) -> None:
    broken = project.parent / "broken"
    broken.touch()
    assert start(project).wait(30) != 0
    broken.unlink()
    assert start(project).wait(30) == 0
    moved = project.rename(project.with_name("elsewhere"))
    assert start(moved).wait(30) == 0
    assert start(moved).wait(30) == 0
    assert starts(moved) == 3
