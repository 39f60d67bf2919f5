"""A container's process: starts it in bubblewrap or proot, signals it, and waits for it.

Its output goes to its log. When the agent ends, the kernel kills bubblewrap, and with it PID 1 of
the container and all its processes. In proot the keeper gets a signal and kills them.
"""

import asyncio
import os
import signal
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import msgspec

from quarterdeck.localcluster.node.logs.writer import LogWriter
from quarterdeck.localcluster.node.sandbox.arguments import NEW_ROOT, Sandbox
from quarterdeck.localcluster.node.sandbox.bubblewrap import is_set_up, mounts_are_made
from quarterdeck.localcluster.node.sandbox.commands import Command
from quarterdeck.localcluster.node.sandbox.mounts import Bind
from quarterdeck.localcluster.node.sandbox.pipes import take_what_is_there
from quarterdeck.localcluster.node.sandbox.starting import PipeEnds, checks_mounts, entering, start
from quarterdeck.localcluster.node.volumes.opened import is_mounted

if TYPE_CHECKING:
    import subprocess

START_FAILED = 128
"""The exit code of a container whose process could not be started, as in container runtimes."""

_CHUNK = 65536


class Ended(msgspec.Struct, frozen=True):
    """The exit code of a process; `start_error` is why it could not be started."""

    code: int
    start_error: str = ""


class _SandboxStatus(msgspec.Struct, rename="kebab"):
    """The two lines that bubblewrap writes to its status descriptor."""

    child_pid: int | None = None
    exit_code: int | None = None


class ContainerProcess:
    """A container's process, from its start to its end."""

    def __init__(self, sandbox: Sandbox, log: LogWriter) -> None:
        self.sandbox = sandbox
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._bubblewrap: subprocess.Popen[bytes] | None = None
        self._child: int | None = None
        """A pidfd, so that a signal cannot reach a later process with the same id."""
        self.pid: int | None = None
        self._gate: int | None = None
        """The pipe on which bubblewrap waits after its mounts, if they are checked."""
        self._refusal = ""
        self._status = b""
        self._errors = b""
        self._started: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[Ended] = self._loop.create_future()

    async def start(self) -> None:
        """Start the process; return when its PID is known, or when it has failed."""
        try:
            self._spawn()
        except Exception as error:  # Any failure means that nothing runs, which is reported.
            self._log.close()
            self.ended.set_result(Ended(START_FAILED, f"cannot be started: {error}"))
            return
        await self._started
        mounts = [each for each in self.sandbox.mounts if isinstance(each, Bind) and each.opened]
        if self._gate is not None:
            await self._check_mounts(mounts)
        for mount in mounts:
            if mount.opened:
                mount.opened.close()

    async def _check_mounts(self, mounts: list[Bind]) -> None:
        """Let the program run if the mounts are the opened files; otherwise kill it."""
        # Bubblewrap does not announce its mounts, so poll.
        while not self.ended.done() and not mounts_are_made(self.pid or 0):  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        if not self.ended.done() and self._gate is not None:
            root = f"/proc/{self.pid}/root{NEW_ROOT if self.sandbox.user else ''}"
            for mount in mounts:
                if mount.opened and not is_mounted(mount.opened, root, mount.target):
                    self._refusal = f"{mount.target}: its source was replaced while it was mounted"
                    self.kill()
            if not self._refusal:
                os.write(self._gate, b"\n")
            self._close_gate()

    def _spawn(self) -> None:
        sandbox = self.sandbox
        with ExitStack() as opened:

            def ours(descriptor: int) -> int:
                """Close the descriptor if the start fails."""
                opened.callback(os.close, descriptor)
                return descriptor

            with ExitStack() as handed:
                gate: int | None = None
                if checks_mounts(sandbox):
                    gate, self._gate = os.pipe()
                    opened.callback(self._close_gate)
                    handed.callback(os.close, gate)
                ends = []
                for _ in range(3):
                    end, their_end = os.pipe()
                    ends.append((ours(end), their_end))
                    handed.callback(os.close, their_end)
                (status, status_end), (out, out_end), (err, err_end) = ends
                theirs = PipeEnds(status_end, out_end, err_end)
                self._bubblewrap = start(sandbox, theirs, gate)
            opened.callback(self._bubblewrap.wait)
            opened.callback(_end, self._bubblewrap, sandbox)
            self._watch = ours(os.pidfd_open(self._bubblewrap.pid))
            opened.pop_all()
        self._pipes = {
            status: self._take_status,
            out: lambda chunk: self._log.feed("stdout", chunk),
            err: self._take_error,
        }
        for descriptor in self._pipes:
            os.set_blocking(descriptor, False)
            self._loop.add_reader(descriptor, self._drain_once, descriptor)
        self._loop.add_reader(self._watch, self._finish)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the container's PID 1; bubblewrap itself does not forward signals."""
        if self._child is not None and not self.ended.done():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._child, number)

    def kill(self) -> None:
        """Kill the process, also during its start."""
        self.signal(signal.SIGKILL)
        if not self.ended.done() and self._child is None and self._bubblewrap is not None:
            _end(self._bubblewrap, self.sandbox)

    async def run_inside(self, command: list[str], seconds: float) -> tuple[int, str]:
        """Run a command in the container; return its exit code and the start of its output."""
        if self.pid is None or self.ended.done():
            return START_FAILED, "the container does not run"
        await self._until_set_up(self.pid)
        if self.ended.done():
            return START_FAILED, "the container does not run"
        with entering(self.sandbox, self.pid, self._child, command) as words:
            running = Command(words)
        code = await running.wait(seconds)
        if code is None:
            return START_FAILED, f"no answer within {seconds:g}s"
        return code, running.output.decode(errors="replace").strip()

    async def _until_set_up(self, pid: int) -> None:
        """Wait until bubblewrap has executed the program: before, a command cannot enter.

        Bubblewrap reports the PID before its mounts; proot's keeper reports it afterwards.
        """
        # Nothing announces an exec, so poll.
        while not (self.ended.done() or self.sandbox.proot or is_set_up(pid)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    def _drain_once(self, descriptor: int) -> None:
        """Read one chunk."""
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        if chunk:
            self._pipes[descriptor](chunk)
            return
        self._loop.remove_reader(descriptor)
        del self._pipes[descriptor]
        os.close(descriptor)

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

    def _reported(self) -> _SandboxStatus:
        merged = _SandboxStatus()
        for line in self._status.splitlines():
            with suppress(msgspec.DecodeError):
                part = msgspec.json.decode(line, type=_SandboxStatus)
                merged.child_pid = part.child_pid or merged.child_pid
                if part.exit_code is not None:
                    merged.exit_code = part.exit_code
        return merged

    def _finish(self) -> None:
        """Read the rest of the output, and set `ended`; called when bubblewrap has ended."""
        code = self._bubblewrap.wait() if self._bubblewrap else START_FAILED
        self._loop.remove_reader(self._watch)
        os.close(self._watch)
        for descriptor, take in self._pipes.items():
            self._loop.remove_reader(descriptor)
            take_what_is_there(descriptor, take)
            os.close(descriptor)
        self._pipes.clear()
        if self._child is not None:
            os.close(self._child)
        self._close_gate()
        self._log.close()
        if not self._started.done():
            self._started.set_result(None)
        self.ended.set_result(self._how_it_ended(code))

    def _close_gate(self) -> None:
        if self._gate is not None:
            os.close(self._gate)
            self._gate = None

    def _how_it_ended(self, code: int) -> Ended:
        if self._refusal:
            return Ended(START_FAILED, self._refusal)
        reported = self._reported().exit_code
        if reported is not None:
            return Ended(reported)
        if code < 0:
            return Ended(128 - code)
        return Ended(START_FAILED, self._errors.decode(errors="replace").strip())


def _end(program: "subprocess.Popen[bytes]", sandbox: Sandbox) -> None:
    """End bubblewrap or proot's keeper, and with it the whole container."""
    program.send_signal(signal.SIGTERM if sandbox.proot else signal.SIGKILL)
