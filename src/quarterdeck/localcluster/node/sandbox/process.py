"""A container's process: started in bubblewrap or proot, signalled, waited for.

Everything that it writes goes into its log. When the agent dies, the kernel kills bubblewrap,
and with it PID 1 of the container and so all of its processes; in proot the keeper is told by the
kernel, and kills them.
"""

import asyncio
import os
import signal
import subprocess
from contextlib import ExitStack, suppress

import msgspec

from quarterdeck.localcluster.node.logs.writer import LogWriter
from quarterdeck.localcluster.node.sandbox.arguments import BESIDE, Sandbox
from quarterdeck.localcluster.node.sandbox.mounts import Bind
from quarterdeck.localcluster.node.sandbox.progress import is_set_up, mounts_are_made
from quarterdeck.localcluster.node.sandbox.starting import Ends, entering, is_looked_at, start
from quarterdeck.localcluster.node.volumes.opened import is_mounted

START_FAILED = 128
"""The exit code of a container whose process could not be started, as runtimes report it."""

MOST_OUTPUT = 10 * 1024
"""Bytes that are kept of what a command in a container writes, as the kubelet does."""

_CHUNK = 65536


class Ended(msgspec.Struct, frozen=True):
    """How a process ended; `start_error` says why one never ran."""

    code: int
    start_error: str = ""


class _Status(msgspec.Struct, rename="kebab"):
    """What bubblewrap writes to its status descriptor, in two lines."""

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
        """A pidfd, so that no signal can reach another process after the end."""
        self.pid: int | None = None
        self._gate: int | None = None
        """What bubblewrap waits for when all mounts are made, if they are to be looked at."""
        self._refusal = ""
        self._status = b""
        self._errors = b""
        self._started: asyncio.Future[None] = self._loop.create_future()
        self.ended: asyncio.Future[Ended] = self._loop.create_future()

    async def start(self) -> None:
        """Start it; returns when its PID is known, or when it has failed."""
        try:
            self._spawn()
        except Exception as error:  # whatever it was: nothing runs, and that is said
            self._log.close()
            self.ended.set_result(Ended(START_FAILED, f"cannot be started: {error}"))
            return
        await self._started
        mounts = [each for each in self.sandbox.mounts if isinstance(each, Bind) and each.opened]
        if self._gate is not None:
            await self._let_pass(mounts)
        for mount in mounts:
            if mount.opened:
                mount.opened.close()

    async def _let_pass(self, mounts: list[Bind]) -> None:
        """Let the program run, if what is mounted is what was opened; else end it."""
        # Nothing announces that the mounts are made: look again and again.
        while not self.ended.done() and not mounts_are_made(self.pid or 0):  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        if not self.ended.done() and self._gate is not None:
            root = f"/proc/{self.pid}/root{BESIDE if self.sandbox.user else ''}"
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
                """Closed again, unless all goes well and it is kept."""
                opened.callback(os.close, descriptor)
                return descriptor

            with ExitStack() as handed:
                gate: int | None = None
                if is_looked_at(sandbox):
                    gate, self._gate = os.pipe()
                    opened.callback(self._close_gate)
                    handed.callback(os.close, gate)
                ends = []
                for _ in range(3):
                    end, their_end = os.pipe()
                    ends.append((ours(end), their_end))
                    handed.callback(os.close, their_end)
                (status, status_end), (out, out_end), (err, err_end) = ends
                theirs = Ends(status_end, out_end, err_end)
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
        """Send a signal to the container's PID 1; bubblewrap itself would not pass it on."""
        if self._child is not None and not self.ended.done():
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._child, number)

    def kill(self) -> None:
        """End it at once, whatever state it is in."""
        self.signal(signal.SIGKILL)
        if not self.ended.done() and self._child is None and self._bubblewrap is not None:
            _end(self._bubblewrap, self.sandbox)

    async def run_inside(self, command: list[str], seconds: float) -> tuple[int, str]:
        """Run a command in the container; its exit code and the beginning of its output."""
        if self.pid is None or self.ended.done():
            return START_FAILED, "the container does not run"
        await self._until_set_up(self.pid)
        with entering(self.sandbox, self.pid, command) as words:
            entry = await asyncio.create_subprocess_exec(
                *words.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=words.descriptors,
                env={},
                start_new_session=True,
            )
        try:
            async with asyncio.timeout(seconds):
                output = await _first(entry.stdout, MOST_OUTPUT)
                await entry.wait()
        except TimeoutError:
            self._kill_entry(entry.pid)
            await entry.wait()
            return START_FAILED, f"no answer within {seconds:g}s"
        except asyncio.CancelledError:
            self._kill_entry(entry.pid)
            await entry.wait()
            raise
        return entry.returncode or 0, output.decode(errors="replace").strip()

    def _kill_entry(self, pid: int) -> None:
        """Kill what entered the container, and all that it started."""
        with suppress(ProcessLookupError):
            if self.sandbox.proot is not None:  # its keeper does, and ends then
                os.kill(pid, signal.SIGTERM)
            else:
                os.killpg(pid, signal.SIGKILL)

    async def _until_set_up(self, pid: int) -> None:
        """Wait until bubblewrap has given way to the program: before, there is nothing to enter.

        The PID is reported before the mounts are made; proot's keeper reports it afterwards.
        """
        # Nothing announces an exec: look again and again.
        while not (self.ended.done() or self.sandbox.proot or is_set_up(pid)):  # noqa: ASYNC110
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
        code = self._bubblewrap.wait() if self._bubblewrap else START_FAILED
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
        self._close_gate()
        self._log.close()
        if not self._started.done():
            self._started.set_result(None)
        self.ended.set_result(self._verdict(code))

    def _close_gate(self) -> None:
        if self._gate is not None:
            os.close(self._gate)
            self._gate = None

    def _verdict(self, code: int) -> Ended:
        if self._refusal:
            return Ended(START_FAILED, self._refusal)
        reported = self._reported().exit_code
        if reported is not None:
            return Ended(reported)
        if code < 0:
            return Ended(128 - code)
        return Ended(START_FAILED, self._errors.decode(errors="replace").strip())


def _end(program: "subprocess.Popen[bytes]", sandbox: Sandbox) -> None:
    """End what started the container, and all that it started: proot's keeper sees to that."""
    program.send_signal(signal.SIGTERM if sandbox.proot else signal.SIGKILL)


async def _first(stream: asyncio.StreamReader | None, most: int) -> bytes:
    """The first bytes of a stream; the rest is read too, and dropped."""
    kept = b""
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        kept += chunk[: most - len(kept)]
    return kept
