"""Puts Python packages into a tree: the hashed requirements, our own wheel, and their byte code.

pip and hatchling run on this machine; the byte code is written by the tree's own interpreter.
"""

import os
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from quarterdeck.images.contents import DIST_PACKAGES, LIBRARY, PYTHON
from quarterdeck.images.errors import BuildError

REQUIREMENTS = "requirements/runtime.txt"
_MARKER = re.compile(r"^(?P<requirement>[A-Za-z0-9._-]+==[^\s;]+)\s*;[^\\\n]*", re.MULTILINE)
_GLIBC = range(36, 16, -1)
"""The minor versions of glibc that the wheels may be for: up to that of the Debian suite."""


def source_directory(given: Path | None) -> Path:
    """The checkout that images are built from; BuildError if there is none."""
    directory = given or Path(__file__).resolve().parents[3]
    if not (directory / REQUIREMENTS).is_file():
        raise BuildError(
            f"{directory} has no {REQUIREMENTS}: name a checkout of Quarterdeck with --source"
        )
    return directory.resolve()


def without_markers(requirements: str) -> str:
    """The requirements with those of other machines in them too: pip asks its own Python only.

    A unit test holds that every marker is true for the image's Python.
    """
    return _MARKER.sub(r"\g<requirement>", requirements)


def install_requirements(source: Path, root: Path, scratch: Path) -> None:
    """Install the wheels of the hashed requirements for the image's Python into a tree."""
    plain = scratch / "requirements.txt"
    plain.write_text(without_markers((source / REQUIREMENTS).read_text()))
    machine = platform.machine()
    tags = [f"manylinux_2_{minor}_{machine}" for minor in _GLIBC] + [f"manylinux2014_{machine}"]
    _run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--require-hashes", "--no-deps", "--no-compile", "--only-binary=:all:"),
            *("--python-version", PYTHON.removeprefix("python"), "--implementation", "cp"),
            *(f"--platform={tag}" for tag in tags),
            *("--target", str(root / DIST_PACKAGES), "--root-user-action=ignore"),
            *("--requirement", str(plain)),
        ],
        "pip",
    )


def install_wheel(source: Path, root: Path, scratch: Path, time: int) -> str:
    """Build our wheel and unpack it into a tree; return its version."""
    wheels = scratch / "wheel"
    _run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)],
        "hatchling",
        cwd=source,
        # Zip files cannot tell of a time before 1980.
        variables={"SOURCE_DATE_EPOCH": str(max(time, 315_532_800))},
    )
    (wheel,) = wheels.glob("quarterdeck-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root / DIST_PACKAGES)
    return wheel.name.split("-")[1]


def compile_tree(root: Path) -> None:
    """Write the byte code of all modules in a tree; it does not depend on times of files."""
    _run(
        [
            *("chroot", str(root), f"/usr/bin/{PYTHON}", "-B", "-m", "compileall", "-q", "-j1"),
            *("--invalidation-mode", "unchecked-hash", f"/{LIBRARY}", f"/{DIST_PACKAGES}"),
        ],
        "compileall",
        # The order of a set in byte code follows from the hashes of its strings.
        variables={"PYTHONHASHSEED": "0"},
    )


def _run(
    command: Sequence[str],
    name: str,
    cwd: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip()
        missing = f"No module named {name}" in said
        remedy = (
            "run `make setup`, and build with .venv/bin/quarterdeck" if missing else "see above"
        )
        raise BuildError(f"{name} failed: {said[-600:]}; {remedy}")
