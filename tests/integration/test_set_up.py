"""The set-up of a clone: interrupted, twice at once, with other requirements, and moved.

On a small clone, whose package builds itself and can be made to wait while it does.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.places import ROOT

from quarterdeck.testing.waiting import eventually

BACKEND = """
import time, zipfile
from pathlib import Path

INFO = "tiny-1.dist-info/"
FILES = {
    "tiny.py": "def main(): import sys; print(sys.prefix)",
    f"{INFO}METADATA": "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n",
    f"{INFO}WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    f"{INFO}entry_points.txt": "[console_scripts]\\ntiny = tiny:main\\n",
    f"{INFO}RECORD": "",
}

def build_editable(directory, settings=None, metadata=None):
    if Path("hold").exists():
        Path("hold").rename("held")
        while Path("held").exists():
            time.sleep(0.02)
    name = "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(Path(directory) / name, "w") as wheel:
        for file, text in FILES.items():
            wheel.writestr(file, text)
    return name
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1"
"""

LIMIT = 200
"""Seconds of a wait; an environment is made and pip runs within it, on a busy machine too."""


class Clone:
    """A directory with the set-up in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.started: list[subprocess.Popen[str]] = []

    def set_up(self) -> "subprocess.Popen[str]":
        child = subprocess.Popen(
            [sys.executable, "scripts/set_up.py"],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.started.append(child)
        return child

    def hold(self) -> None:
        """Have the next build wait, until `go`."""
        (self.root / "hold").touch()

    def wait_held(self) -> None:
        eventually((self.root / "held").exists, "the package is being built", LIMIT)

    def go(self) -> None:
        (self.root / "held").unlink(missing_ok=True)

    def program(self) -> str:
        """What the installed program says: the environment that it is in."""
        return subprocess.run(
            [self.root / ".venv/bin/tiny"], capture_output=True, text=True, check=True
        ).stdout.strip()


def ctrl_c(child: "subprocess.Popen[str]") -> str:
    """What a terminal does: the signal goes to the whole group."""
    os.killpg(child.pid, signal.SIGINT)
    said, _ = child.communicate(timeout=60)
    assert child.returncode == 128 + signal.SIGINT, said
    assert "Traceback" not in said.partition("set-up stopped")[2]
    return said


def done(child: "subprocess.Popen[str]") -> str:
    said, _ = child.communicate(timeout=LIMIT)
    assert child.returncode == 0, said
    return said


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Clone]:
    root = tmp_path / "clone"
    shutil.copytree(ROOT / "scripts", root / "scripts")
    # What it says of a machine is another matter.
    (root / "scripts/system-packages").write_text("#!/bin/sh\n")
    (root / "requirements").mkdir()
    (root / "requirements/dev.txt").touch()
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "backend.py").write_text(BACKEND)
    clone = Clone(root)
    yield clone
    for child in clone.started:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def test_a_set_up_never_leaves_a_broken_environment(clone: Clone) -> None:
    """One test, so that an environment that took seconds to make serves all its steps."""
    place = clone.root / ".venv"

    # Ctrl-C in the first moment.
    first = clone.set_up()
    eventually((clone.root / ".venv.new/bin").exists, "the environment is being made", LIMIT)
    assert "set-up stopped; the next `make` begins it again" in ctrl_c(first)
    assert not place.exists()

    # Two at once, and Ctrl-C in the one that works: the one that waits takes its place.
    clone.hold()
    working = clone.set_up()
    clone.wait_held()
    waiting = clone.set_up()
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "another set-up is at work here; waiting for it\n"
    ctrl_c(working)
    clone.go()
    assert done(waiting) == "setting up .venv\n"
    assert clone.program() == str(place)
    assert done(clone.set_up()) == ""

    # Other requirements, and a set-up that is killed: what was there still works.
    (clone.root / "pyproject.toml").write_text(f"{PROJECT}description = 'changed'\n")
    clone.hold()
    killed = clone.set_up()
    clone.wait_held()
    os.killpg(killed.pid, signal.SIGKILL)
    assert clone.program() == str(place)
    clone.go()
    assert done(clone.set_up()) == "setting up .venv\n"
    assert clone.program() == str(place)

    # Moved.
    moved = clone.root.rename(clone.root.with_name("moved"))
    clone.root = moved
    assert done(clone.set_up()).splitlines() == [
        f".venv was made for {place}: this directory was moved or copied",
        "setting up .venv",
    ]
    assert clone.program() == str(moved / ".venv")
    assert not (moved / ".venv.new").exists()
    assert not (moved / ".venv.old").exists()


def test_a_python_that_is_named_replaces_another_one() -> None:
    """And without a name, whichever Python runs the set-up, the environment stays."""
    found = importlib.util.spec_from_file_location("set_up", ROOT / "scripts/set_up.py")
    assert found is not None
    assert found.loader is not None
    set_up = importlib.util.module_from_spec(found)
    found.loader.exec_module(set_up)
    note = {"place": "/clone/.venv", "python": "/usr/bin/python3.11", "inputs": "0"}
    assert set_up.is_sound(note, note)
    assert set_up.is_sound(note, note, "/usr/bin/python3.11")
    assert not set_up.is_sound(note, note, "/usr/bin/python3.13")
    assert not set_up.is_sound({}, note)
    assert not set_up.is_sound({}, note, "/usr/bin/python3.13")


def test_packages_are_not_started_also_after_an_interrupted_installation(tmp_path: Path) -> None:
    """The file that keeps services from starting is removed when Ctrl-C ends the script."""
    script = (ROOT / "scripts/system-packages").read_text()
    policy = tmp_path / "policy-rc.d"
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {
        "id": "echo 0",
        "flock": 'shift; exec "$@"',
        "apt-get": f"touch {tmp_path}/reached; sleep 60",
        "python3": "exit 1",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    here = tmp_path / "system-packages"
    here.write_text(script.replace("/usr/sbin/policy-rc.d", str(policy)))
    here.chmod(0o755)
    child = subprocess.Popen(
        [here],
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    eventually((tmp_path / "reached").exists, "packages are being installed")
    assert policy.exists()
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(timeout=60) == 128 + signal.SIGINT
    assert not policy.exists()
