"""How runs ended, written down beside their logs: what an agent that was killed could not tell.

The pod's status is where an end is told, but the API server may be away when it happens, and
then the agent may be killed. Without this a Job that is done would be run again.
"""

from pathlib import Path

import msgspec

from quarterdeck.localcluster.node.pod.containers import Exit
from quarterdeck.localcluster.node.times import Instant
from quarterdeck.localcluster.state import write_private
from quarterdeck.log import get_logger

log = get_logger("node.exits")


class Begun(msgspec.Struct, frozen=True):
    """The last run of a container that was begun, by its number, and its end if that is known."""

    number: int
    exit: Exit | None = None


def exit_path(log_path: Path) -> Path:
    """Where the end of a run is written down, by the path of its log."""
    return log_path.with_suffix(".exit")


def write_exit(log_path: Path, ended: Exit) -> None:
    """Write an end down; without room for it, a killed agent will not know it."""
    try:
        write_private(exit_path(log_path), msgspec.json.encode(ended))
    except OSError as error:
        log.warning("a run's end is not on disk", path=str(log_path), error=str(error))


def last_begun(directory: Path, now: Instant) -> Begun | None:
    """The last run whose log is in a directory."""
    numbers = [int(path.stem) for path in directory.glob("*.log") if path.stem.isdecimal()]
    if not numbers:
        return None
    number = max(numbers)
    return Begun(number, _read(exit_path(directory / f"{number}.log"), now))


def _read(path: Path, now: Instant) -> Exit | None:
    try:
        ended = msgspec.json.decode(path.read_bytes(), type=Exit)
    except (OSError, msgspec.DecodeError):
        return None
    # The machine may have been booted since: only the time of day still means something.
    finished = now.when_it_was(ended.finished.wall)
    started = finished.when_it_was(ended.started.wall)
    return msgspec.structs.replace(ended, started=started, finished=finished)
