"""Stores the exits of runs beside their logs, so that a killed agent does not lose them.

An exit is reported in the pod's status. But the API server may be away at that time, and then the
agent may be killed. Without this file a Job that is done would run again.
"""

from pathlib import Path

import msgspec

from quarterdeck.localcluster.node.pod.containers import Exit
from quarterdeck.localcluster.node.times import Instant
from quarterdeck.log import get_logger
from quarterdeck.private_file import write_private

log = get_logger("node.exits")


class LastRun(msgspec.Struct, frozen=True):
    """The number of a container's last run on disk, and its exit if that is known."""

    number: int
    exit: Exit | None = None


def exit_path(log_path: Path) -> Path:
    """The path of a run's exit file, by the path of its log."""
    return log_path.with_suffix(".exit")


def write_exit(log_path: Path, ended: Exit) -> None:
    """Store an exit; on a full disk only log a warning."""
    try:
        write_private(exit_path(log_path), msgspec.json.encode(ended))
    except OSError as error:
        log.warning("a run's end is not on disk", path=str(log_path), error=str(error))


def last_run(directory: Path, now: Instant) -> LastRun | None:
    """The last run whose log is in a directory; None if there is none."""
    numbers = [int(path.stem) for path in directory.glob("*.log") if path.stem.isdecimal()]
    if not numbers:
        return None
    number = max(numbers)
    return LastRun(number, _read(exit_path(directory / f"{number}.log"), now))


def _read(path: Path, now: Instant) -> Exit | None:
    try:
        ended = msgspec.json.decode(path.read_bytes(), type=Exit)
    except (OSError, msgspec.DecodeError):
        return None
    # The machine may have rebooted since, so only the time of day is valid.
    finished = now.at_wall_time(ended.finished.wall)
    started = finished.at_wall_time(ended.started.wall)
    return msgspec.structs.replace(ended, started=started, finished=finished)
