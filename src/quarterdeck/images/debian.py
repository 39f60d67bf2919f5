"""Extracts Debian packages into a directory, without installing them: by mmdebstrap, as root."""

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from quarterdeck.images.contents import STATUS, SUITE
from quarterdeck.images.errors import BuildError

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_DESCRIBE = f"""
mkdir -p "$1/{STATUS}"
for deb in "$1"/var/cache/apt/archives/*.deb; do
    dpkg-deb --field "$deb" > "$1/{STATUS}/$(dpkg-deb --field "$deb" Package)"
done
"""


def check_machine() -> None:
    """BuildError, with what to do, unless this machine can build images."""
    if os.geteuid() != 0:
        raise BuildError("an image is built by root: run it with sudo, or use the Containerfile")
    if shutil.which("mmdebstrap") is None:
        raise BuildError("mmdebstrap is missing: apt-get install mmdebstrap")
    architecture()


def architecture() -> str:
    """The architecture of this machine, as images name it."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise BuildError(
            f"no image for {machine}; build on one of: {', '.join(sorted(_ARCHITECTURES))}"
        )
    return _ARCHITECTURES[machine]


def extract(packages: Sequence[str], root: Path, mirrors: Sequence[str] = ()) -> None:
    """Extract packages, and what they depend on, into a new directory.

    Their descriptions are added where scanners look. The mirrors are lines of apt's sources.list;
    without them, mmdebstrap takes Debian's own.
    """
    command = [
        "mmdebstrap",
        "--quiet",
        "--mode=root",
        "--variant=extract",
        f"--include={','.join(packages)}",
        f"--extract-hook={_DESCRIBE}",
        SUITE,
        str(root),
        *mirrors,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("E:")]
        raise BuildError(
            f"mmdebstrap failed: {' '.join(said) or done.stderr[-500:]}; try again when Debian's "
            f"archive can be reached, or name another with --mirror"
        )
