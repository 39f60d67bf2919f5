"""Makes the environment in .venv, or finds it as it should be; `make` runs this before all else.

It is made aside and moved into place when it is complete, so an interrupted set-up leaves what was
there. One set-up works at a time in a clone; others wait for it. What an environment was made from
is written into it: when that no longer holds, because the requirements changed, the clone was moved
or copied, or its Python is gone, it is made again. With --this-python (`make PYTHON=...`) it is
made again if it has another Python, too.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - it is an older one that has to be told
    sys.stderr.write("Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11\n")
    sys.exit(2)

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INPUTS = ("requirements/dev.txt", "pyproject.toml", "scripts/system-packages")
CANNOT = 2


def recipe(environment: Path) -> dict[str, str]:
    """What a sound environment at this place was made from, as it would be noted now."""
    inputs = hashlib.sha256()
    for name in INPUTS:
        inputs.update((ROOT / name).read_bytes())
    return {
        "place": str(environment),
        "python": str((environment / "bin" / "python").resolve()),
        "inputs": inputs.hexdigest(),
    }


def noted(environment: Path) -> dict[str, str]:
    """What was noted when the environment was complete; nothing where it was not."""
    try:
        note: dict[str, str] = json.loads(_note(environment).read_text())
    except (OSError, ValueError):
        return {}
    return note if (environment / "bin" / "python").exists() else {}


def is_sound(was: dict[str, str], wanted: dict[str, str], python: str = "") -> bool:
    """Whether an environment with this note can stay; with this Python, if one is named."""
    return was == wanted and python in ("", was["python"])


def make(environment: Path, locked: int, python: str = "") -> None:
    """Make the environment aside, and move it into place."""
    was, wanted = noted(environment), recipe(environment)
    aside = environment.with_name(f"{environment.name}.new")
    old = environment.with_name(f"{environment.name}.old")
    for left in (aside, old):
        _remove(left)
    if was and was["place"] != wanted["place"]:
        print(f"{environment.name} was made for {was['place']}: this directory was moved or copied")
    print(f"setting up {environment.name}", flush=True)
    if is_sound(was | {"inputs": ""}, wanted | {"inputs": ""}, python):
        # Only the requirements differ: most of it can stay.
        shutil.copytree(environment, aside, symlinks=True)
    else:
        _run(locked, sys.executable, "-m", "venv", str(aside))
    its_python = str(aside / "bin" / "python")
    pip = (its_python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    _run(locked, *pip, "--require-hashes", "-r", "requirements/dev.txt")
    _run(locked, *pip, "--no-deps", "--no-build-isolation", "-e", ".")
    _rename_inside(aside, environment)
    note = recipe(environment) | {"python": recipe(aside)["python"]}
    _note(aside).write_text(json.dumps(note))
    if environment.exists():
        environment.rename(old)
    aside.rename(environment)
    _remove(old)


def main(environment: Path, python: str = "") -> int:
    """Return when the environment is there; the exit code."""
    if is_sound(noted(environment), recipe(environment), python):
        return 0
    # On the directory itself: no file has to be made for it, and it stays the same when moved.
    # Programs that are started inherit it, so that one that outlives this process keeps it too.
    locked = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("another set-up is at work here; waiting for it", flush=True)
        fcntl.flock(locked, fcntl.LOCK_EX)
    if is_sound(noted(environment), recipe(environment), python):
        return 0
    _run(locked, str(ROOT / "scripts" / "system-packages"))
    make(environment, locked, python)
    return 0


def _note(environment: Path) -> Path:
    return environment / ".ready"


def _run(locked: int, *words: str) -> None:
    subprocess.run(words, cwd=ROOT, check=True, pass_fds=(locked,))


def _rename_inside(aside: Path, environment: Path) -> None:
    """Write the final place where the one aside stands: in scripts and in what tells of them."""
    here, there = str(aside).encode(), str(environment).encode()
    for path in (aside / "pyvenv.cfg", *(aside / "bin").iterdir()):
        if path.is_symlink() or not path.is_file():
            continue
        text = path.read_bytes()
        if here in text and b"\0" not in text:
            path.write_bytes(text.replace(here, there))


def _remove(left: Path) -> None:
    """Remove what an earlier set-up has left, if it has."""
    if left.is_dir() and not left.is_symlink():
        shutil.rmtree(left)
    else:
        left.unlink(missing_ok=True)


def _stop(number: int, _: object) -> None:
    raise KeyboardInterrupt(number)


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _stop)
    try:
        named = str(Path(sys.executable).resolve()) if "--this-python" in sys.argv else ""
        places = [word for word in sys.argv[1:] if not word.startswith("--")]
        sys.exit(main(ROOT / (places[0] if places else ".venv"), named))
    except KeyboardInterrupt as stop:
        print("set-up stopped; the next `make` begins it again", file=sys.stderr)
        sys.exit(128 + (stop.args[0] if stop.args else signal.SIGINT))
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode if failed.returncode > 0 else CANNOT)
