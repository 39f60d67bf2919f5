"""A container's process: started in bubblewrap, signalled, waited for.

Everything that it writes goes into its log. When the agent dies, the kernel kills bubblewrap,
and with it PID 1 of the container and so all of its processes.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import msgspec

from quarterdeck.localcluster.node.logs import LogWriter
from quarterdeck.localcluster.node.sandbox import Sandbox, entering, options, program

START_FAILED = 128
"""The exit code of a container whose process could not be started, as runtimes report it."""

_CHUNK = 65536


class Ended(msgspec.Struct, frozen=True):
    """How a process ended; `start_error` says why one never ran."""

    code: int
    start_error: str = ""


class _Status(msgspec.Struct, rename="kebab"):
    """What bubblewrap writes to its status descriptor, in two lines."""

    child_pid: int | None = None
    exit_code: int | None = None


class Process:
    """A container's process, from its start to its end."""

    def __init__(self, sandbox: Sandbox, log: LogWriter) -> None:
        self.sandbox = sandbox
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._child: int | None = None
        """A pidfd, so that no signal can reach another process after the end."""
        self.pid: int | None = None
        self._status = b""
        self._errors = b""
        self._started: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[Ended] = self._loop.create_future()

    async def start(self) -> None:
        """Start it; returns when its PID is known, or when it has failed."""
        try:
            self._spawn()
        except OSError as error:
            self._log.close()
            self.ended.set_result(Ended(START_FAILED, f"bwrap: {error}"))
            return
        await self._started

    def _spawn(self) -> None:
        arguments = os.memfd_create("options")
        os.write(arguments, options(self.sandbox))
        os.lseek(arguments, 0, os.SEEK_SET)
        status, status_end = os.pipe()
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        try:
            self._bubblewrap = subprocess.Popen(
                [
                    *("bwrap", "--args", str(arguments), "--json-status-fd", str(status_end)),
                    *("--", *program(self.sandbox)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out_end,
                stderr=err_end,
                pass_fds=[arguments, status_end],
                # The container's own variables come by --args.
                env={"PATH": os.environ.get("PATH", os.defpath)},
            )
        finally:
            for descriptor in (arguments, status_end, out_end, err_end):
                os.close(descriptor)
        self._pipes = {
            status: self._take_status,
            out: lambda chunk: self._log.feed("stdout", chunk),
            err: self._take_error,
        }
        for descriptor in self._pipes:
            os.set_blocking(descriptor, False)
            self._loop.add_reader(descriptor, self._drain_once, descriptor)
        self._watch = os.pidfd_open(self._bubblewrap.pid)
        self._loop.add_reader(self._watch, self._finish)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the container's PID 1; bubblewrap itself would not pass it on."""
        if self._child is not None and not self.ended.done():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._child, number)

    def kill(self) -> None:
        """End it at once, whatever state it is in."""
        self.signal(signal.SIGKILL)
        if not self.ended.done() and self._child is None:
            self._bubblewrap.kill()

    async def run_inside(self, command: list[str], seconds: float) -> tuple[int, str]:
        """Run a command in the container; its exit code and what it wrote, cut short."""
        if self.pid is None or self.ended.done():
            return START_FAILED, "the container does not run"
        await self._until_set_up(self.pid)
        inside = await asyncio.create_subprocess_exec(
            *entering(self.pid, command, root=self.sandbox.root, user=self.sandbox.user),
            executable=shutil.which("nsenter"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(self.sandbox.variables),
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(seconds):
                output, _ = await inside.communicate()
        except TimeoutError:
            _kill_group(inside.pid)
            await inside.wait()
            return START_FAILED, f"no answer within {seconds:g}s"
        except asyncio.CancelledError:
            _kill_group(inside.pid)
            raise
        return inside.returncode or 0, output[-1024:].decode(errors="replace").strip()

    async def _until_set_up(self, pid: int) -> None:
        """Wait until bubblewrap has given way to the program: before, there is nothing to enter.

        The PID is reported before the mounts are made.
        """
        # Nothing announces an exec: look again and again.
        while not self.ended.done() and _is_bubblewrap(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def _drain_once(self, descriptor: int) -> bool:
        """Take one chunk; whether there may be more."""
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            self._pipes[descriptor](chunk)
            return True
        self._loop.remove_reader(descriptor)
        del self._pipes[descriptor]
        os.close(descriptor)
        return False

    def _take_status(self, chunk: bytes) -> None:
        self._status += chunk
        child = self._reported().child_pid
        if child is not None and self._child is None:
            with suppress(ProcessLookupError):
                self._child, self.pid = os.pidfd_open(child), child
            if not self._started.done():
                self._started.set_result(None)

    def _take_error(self, chunk: bytes) -> None:
        self._errors = (self._errors + chunk)[-1024:]
        self._log.feed("stderr", chunk)

    def _reported(self) -> _Status:
        merged = _Status()
        for line in self._status.splitlines():
            with suppress(msgspec.DecodeError):
                part = msgspec.json.decode(line, type=_Status)
                merged.child_pid = part.child_pid or merged.child_pid
                if part.exit_code is not None:
                    merged.exit_code = part.exit_code
        return merged

    def _finish(self) -> None:
        """Bubblewrap has ended: all that was written is there to be read."""
        code = self._bubblewrap.wait()
        self._loop.remove_reader(self._watch)
        os.close(self._watch)
        for descriptor in list(self._pipes):
            while self._drain_once(descriptor):
                pass
            if descriptor in self._pipes:
                self._loop.remove_reader(descriptor)
                os.close(descriptor)
        self._pipes.clear()
        if self._child is not None:
            os.close(self._child)
        self._log.close()
        if not self._started.done():
            self._started.set_result(None)
        self.ended.set_result(self._verdict(code))

    def _verdict(self, code: int) -> Ended:
        reported = self._reported().exit_code
        if reported is not None:
            return Ended(reported)
        if code < 0:
            return Ended(128 - code)
        return Ended(START_FAILED, self._errors.decode(errors="replace").strip())


def _is_bubblewrap(pid: int) -> bool:
    try:
        program = Path(f"/proc/{pid}/exe").readlink()
    except OSError:
        return True
    return program == Path(shutil.which("bwrap") or "bwrap").resolve()


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
