"""What a run needs besides this project: the peers' environment and the Go program.

Both are made when they are missing or older than what they are made from. What cannot be had is
a reason, which then stands in the rows of those that need it.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

BENCH = Path(__file__).resolve().parent
PEERS = BENCH / ".venv-peers"
REQUIREMENTS = BENCH / "peers" / "requirements.txt"
GO_SOURCES = BENCH / "go"
GO_PROGRAM = BENCH / ".build" / "bench-go"
LIMIT = 900
"""Seconds for one of the two to be made, on a machine that has nothing cached."""


class Missing(Exception):  # noqa: N818 - it says what happened
    """Something cannot be had; the text says what and why."""


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """The programs that subjects are started with; a reason instead of one that is missing."""

    peers: Path | str
    go: Path | str
    ours: Path = Path(sys.executable)


def prepare(say: Callable[[str], None], *, peers: bool = True) -> Tools:
    """Make what is missing; the peers only where something is measured that has some."""
    return Tools(
        peers=_or_reason(_peers, say) if peers else "not asked for",
        go=_or_reason(_go, say),
    )


def _or_reason(
    make: Callable[[Callable[[str], None]], Path], say: Callable[[str], None]
) -> Path | str:
    try:
        return make(say)
    except Missing as missing:
        say(f"missing: {missing}")
        return str(missing)


def _peers(say: Callable[[str], None]) -> Path:
    """The Python of an environment with exactly the locked peers."""
    python = PEERS / "bin" / "python"
    stamp = PEERS / ".locked"
    locked = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == locked:
        return python
    say("installing the peers")
    _run([sys.executable, "-m", "venv", "--clear", str(PEERS)], "the peers' environment")
    install = ["-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(REQUIREMENTS)]
    _run([str(python), *install], "the peers")
    stamp.write_text(locked)
    return python


def _go(say: Callable[[str], None]) -> Path:
    """The Go program, built from what is there now."""
    sources = [path for path in GO_SOURCES.iterdir() if path.is_file()]
    newest = max(path.stat().st_mtime for path in sources)
    if GO_PROGRAM.exists() and GO_PROGRAM.stat().st_mtime > newest:
        return GO_PROGRAM
    compiler = shutil.which("go")
    if compiler is None:
        raise Missing("no go in PATH")
    say("building the Go program")
    build = [compiler, "build", "-trimpath", "-o", str(GO_PROGRAM), "."]
    _run(build, "the Go program", directory=GO_SOURCES)
    return GO_PROGRAM


def _run(command: Sequence[str], what: str, directory: Path = BENCH) -> None:
    try:
        subprocess.run(
            command, cwd=directory, check=True, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"{what}: not made within {LIMIT} s") from None
    except subprocess.CalledProcessError as failed:
        last = (failed.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Missing(f"{what}: {last}") from None


def versions(tools: Tools) -> dict[str, str]:
    """The versions of everything that is compared."""
    names = ["kopf", "kr8s", "kubernetes", "kubernetes-asyncio", "lightkube"]
    found = {"python": sys.version.split()[0]}
    if isinstance(tools.peers, Path):
        found |= _installed(tools.peers, names)
    for line in (GO_SOURCES / "go.mod").read_text().splitlines():
        if line.startswith("\tsigs.k8s.io/controller-runtime "):
            found["controller-runtime"] = line.split()[1].removeprefix("v")
    return found


def _installed(python: Path, names: Sequence[str]) -> dict[str, str]:
    code = "import sys, importlib.metadata as m; print(*(m.version(n) for n in sys.argv[1:]))"
    answer = subprocess.run(
        [python, "-c", code, *names], check=True, capture_output=True, text=True, timeout=60
    )
    return dict(zip(names, answer.stdout.split(), strict=True))
