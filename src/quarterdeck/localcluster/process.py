"""Child processes that end with this process, with a log file each."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from quarterdeck.localcluster import die_with_parent, end_with_program

LOG_TAIL_LINES = 15
_TAIL_BYTES = 32 * 1024
_POLL_PERIOD = 0.005


class Spawned(msgspec.Struct, frozen=True):
    """A started process."""

    popen: "subprocess.Popen[bytes]"
    """The process itself, or the one that runs the program and ends what it leaves behind."""
    pid: int
    """The process id of the program."""


class Spawner:
    """Starts processes from one thread, which lives as long as they do.

    For PR_SET_PDEATHSIG the parent is the thread that forked. The kernel would kill a component
    that a short-lived thread has restarted.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")

    def spawn(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        log: Path,
        with_descendants: bool = False,
        descriptors: Sequence[int] = (),
    ) -> Spawned:
        """Start a process that writes to the log file, and inherits these open files.

        `with_descendants`: all processes that it starts, and that these start, end with it.
        """
        how = _spawn_with_descendants if with_descendants else _spawn
        return self._thread.submit(how, argv, environment, log, descriptors).result()

    def close(self) -> None:
        """End the thread, and with it all processes that it has started."""
        self._thread.shutdown()


def _spawn(
    argv: Sequence[str], environment: Mapping[str, str], log: Path, descriptors: Sequence[int]
) -> Spawned:
    launcher = _launcher(die_with_parent.__file__)
    popen = _popen([*launcher, *argv], environment, log, *descriptors)
    return Spawned(popen, popen.pid)


def _spawn_with_descendants(
    argv: Sequence[str], environment: Mapping[str, str], log: Path, descriptors: Sequence[int]
) -> Spawned:
    report, reported = os.pipe()
    with os.fdopen(report, "rb") as stream:
        try:
            launcher = [*_launcher(end_with_program.__file__), str(reported)]
            popen = _popen([*launcher, *argv], environment, log, reported, *descriptors)
        finally:
            os.close(reported)
        # Empty if it could not start: it says why in the log, and its end is noticed as any other.
        return Spawned(popen, int(stream.readline() or popen.pid))


def _launcher(program: str) -> list[str]:
    return [sys.executable, "-I", "-S", program, str(os.getpid())]


def _popen(
    argv: Sequence[str], environment: Mapping[str, str], log: Path, *descriptors: int
) -> "subprocess.Popen[bytes]":
    with log.open("ab") as output:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment),
            pass_fds=descriptors,
            # Its own group: Ctrl-C goes to this process, which then stops the children in order.
            process_group=0,
        )


class ComponentProcess:
    """One component's process, across restarts."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        *,
        spawner: Spawner,
        environment: Mapping[str, str],
        log: Path,
        with_descendants: bool = False,
        descriptors: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.argv = list(argv)
        self.log = log
        self._spawner = spawner
        self._environment = environment
        self._with_descendants = with_descendants
        self._descriptors = descriptors
        self._spawned: Spawned | None = None

    @property
    def pid(self) -> int | None:
        """The process id; None if it does not run."""
        spawned = self._spawned
        return spawned.pid if spawned and spawned.popen.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last process; None while it runs or before the first start."""
        return self._spawned.popen.poll() if self._spawned else None

    def start(self) -> None:
        """Start the process unless it runs; the earlier log is kept beside the new one."""
        if self.pid is not None:
            return
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".previous.log"))
        self._spawned = self._spawner.spawn(
            self.argv,
            environment=self._environment,
            log=self.log,
            with_descendants=self._with_descendants,
            descriptors=self._descriptors,
        )

    def stop(self, grace: float) -> None:
        """Send SIGTERM, and SIGKILL if it still runs after `grace` seconds."""
        if self._spawned is None or self.pid is None:
            return
        self._send(signal.SIGCONT)  # A paused process does not handle SIGTERM.
        self._send(signal.SIGTERM)
        try:
            self._spawned.popen.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        if self._spawned is not None:
            self._send(signal.SIGKILL)
            self._spawned.popen.wait()

    def pause(self) -> None:
        """Pause the process: its connections stay open, and it answers nothing."""
        self._signal(signal.SIGSTOP)
        # The signal is sent, and on a busy machine the process still answers for a moment.
        while (pid := self.pid) is not None and not _is_stopped(pid):
            time.sleep(_POLL_PERIOD)

    def resume(self) -> None:
        """Resume a paused process."""
        self._signal(signal.SIGCONT)

    def last_lines(self) -> str:
        """The end of its log."""
        return tail(self.log)

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is None:
            raise ProcessLookupError(f"{self.name} is not running")
        self._send(number)

    def _send(self, number: signal.Signals) -> None:
        """Send the signal to the program, if it runs."""
        if (pid := self.pid) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, number)


def _is_stopped(pid: int) -> bool:
    """Whether all threads of the process are stopped, or it has ended."""
    try:
        threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except OSError:  # A thread has just ended.
        return False
    return all(stat.rpartition(")")[2].split()[0] in "TtXZ" for stat in threads)


def how_it_ended(exit_code: int | None) -> str:
    """The end of a process, for people: its exit code, or the signal that killed it."""
    if exit_code is not None and exit_code < 0:
        return f"was killed by {signal.Signals(-exit_code).name}"
    return f"ended with exit code {exit_code}"


def tail(log: Path, lines: int = LOG_TAIL_LINES) -> str:
    """The last lines of a file; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
