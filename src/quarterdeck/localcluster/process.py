"""Child processes that end with this process, with a log file each."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from quarterdeck.localcluster import die_with_parent

LOG_TAIL_LINES = 15
_TAIL_BYTES = 32 * 1024


class Spawner:
    """Starts processes from one thread, which lives as long as they do.

    For PR_SET_PDEATHSIG the parent is the thread that forked. The kernel would kill a component
    that a short-lived thread has restarted.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")

    def spawn(
        self, argv: Sequence[str], *, environment: Mapping[str, str], log: Path
    ) -> "subprocess.Popen[bytes]":
        """Start a process that writes to the log file."""
        return self._thread.submit(_spawn, argv, environment, log).result()

    def close(self) -> None:
        """End the thread, and with it all processes that it has started."""
        self._thread.shutdown()


def _spawn(
    argv: Sequence[str], environment: Mapping[str, str], log: Path
) -> "subprocess.Popen[bytes]":
    launcher = [sys.executable, "-I", "-S", die_with_parent.__file__, str(os.getpid())]
    with log.open("ab") as output:
        return subprocess.Popen(
            [*launcher, *argv],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(environment),
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
    ) -> None:
        self.name = name
        self.argv = list(argv)
        self.log = log
        self._spawner = spawner
        self._environment = environment
        self._popen: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id; None if it does not run."""
        return self._popen.pid if self._popen and self._popen.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the last process; None while it runs or before the first start."""
        return self._popen.poll() if self._popen else None

    def start(self) -> None:
        """Start the process unless it runs; the earlier log is kept beside the new one."""
        if self.pid is not None:
            return
        if self.log.exists():
            self.log.replace(self.log.with_suffix(".previous.log"))
        self._popen = self._spawner.spawn(self.argv, environment=self._environment, log=self.log)

    def stop(self, grace: float) -> None:
        """Send SIGTERM, and SIGKILL if it still runs after `grace` seconds."""
        if self._popen is None or self.pid is None:
            return
        self._popen.send_signal(signal.SIGCONT)  # A paused process does not handle SIGTERM.
        self._popen.terminate()
        try:
            self._popen.wait(grace)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        if self._popen is not None:
            self._popen.kill()
            self._popen.wait()

    def pause(self) -> None:
        """Pause the process: its connections stay open, and it answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume a paused process."""
        self._signal(signal.SIGCONT)

    def last_lines(self) -> str:
        """The end of its log."""
        return tail(self.log)

    def _signal(self, number: signal.Signals) -> None:
        if self._popen is None or self.pid is None:
            raise ProcessLookupError(f"{self.name} is not running")
        self._popen.send_signal(number)


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
