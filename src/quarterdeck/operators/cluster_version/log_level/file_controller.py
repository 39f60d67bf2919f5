"""Follows a configuration file, and applies its log level in this replica.

The file is looked at a few times a second. It is read when it has changed and then stayed the same
for one look, so that a writer has time to complete it. Its target counts, not the symbolic link: a
kubelet replaces the files of a ConfigMap by a new target of a link. The last valid configuration
stays in force while the file is missing or invalid.
"""

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path

from prometheus_client import Gauge

from quarterdeck import log as logs
from quarterdeck.controller import Manager
from quarterdeck.operators.cluster_version.log_level.config_file import (
    MAX_BYTES,
    InvalidConfigFile,
    decide_by_file,
    level_in,
)
from quarterdeck.operators.cluster_version.log_level.gauge import add_verbosity_gauge
from quarterdeck.operators.cluster_version.log_level.switch import Switch

log = logs.get_logger("cluster_version.log_level")

LOOK_PERIOD = 0.2
"""Seconds between two looks at the file."""

_Facts = tuple[int, ...]


def add_log_level_file(manager: Manager, path: Path, changed: Callable[[], None]) -> None:
    """Let the file set the verbosity of this process; call `changed` after each change of it."""
    add_verbosity_gauge(manager)
    gauge = Gauge(
        "quarterdeck_config_file_invalid",
        "1 while the configuration file is missing or invalid, so that the last valid one counts.",
        registry=manager.registry,
    )
    follower = ConfigFile(path, gauge, changed)
    manager.add_task("configuration file", follower.run, always=True)


class ConfigFile:
    """The configuration file, and the level that it last asked for."""

    def __init__(self, path: Path, invalid: Gauge, changed: Callable[[], None]) -> None:
        self._path = path
        self._invalid = invalid
        self._changed = changed
        self._switch = Switch()
        self._level: str | None = None
        self._seen: _Facts | str | None = None
        """The file, or why there is none, at the last look; None before the first one."""
        self._read: _Facts | str | None = None
        """The file, or why there is none, that was last acted on."""
        self._reported = ""

    async def run(self) -> None:
        """Look at the file until cancelled."""
        self.look()
        while True:
            self.look()
            await asyncio.sleep(LOOK_PERIOD)

    def look(self) -> None:
        """Apply the file if it has changed, and has stayed the same since the last look."""
        seen, self._seen = self._seen, _facts(self._path)
        if self._seen != seen or self._seen == self._read:
            return
        self._read = self._seen
        try:
            self._level = level_in(_content(self._path))
        except InvalidConfigFile as error:
            self._report(str(error))
        except OSError as error:
            self._report(f"{error.strerror}: make it a file that the operator may read")
            self._read = None  # The cause may end without a change of the file.
        else:
            self._report("")
        before = logs.verbosity()
        self._switch.turn(decide_by_file(self._level, self._switch.startup))
        if logs.verbosity() != before:
            self._changed()

    def _report(self, fault: str) -> None:
        """Log a new fault, and the end of one, in one line each."""
        self._invalid.set(bool(fault))
        if fault and fault != self._reported:
            kept = self._level or "start-up"
            log.error("configuration file not used", file=str(self._path), why=fault, kept=kept)
        elif self._reported and not fault:
            log.info("configuration file valid again", file=str(self._path))
        self._reported = fault


def _facts(path: Path) -> _Facts | str:
    """What changes when the file does; the reason if it cannot be found."""
    try:
        found = path.stat()
    except OSError as error:
        return str(error.strerror)
    return (
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _content(path: Path) -> bytes:
    """The content of the regular file, with one byte too many if it is too long."""
    # A pipe without a writer would block the process.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InvalidConfigFile("not a regular file: put a file there")
        return os.read(descriptor, MAX_BYTES + 1)
    finally:
        os.close(descriptor)
