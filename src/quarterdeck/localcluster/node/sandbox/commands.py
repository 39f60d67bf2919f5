"""Runs a command in a container for a while: an exec probe, a preStop hook.

What counts is the end of the command itself. A process that it leaves behind in the container may
hold on to its output for ever, so the end of the output is not waited for.
"""

import asyncio
import os
import signal
import subprocess
from contextlib import suppress

from quarterdeck.localcluster.node.sandbox.pipes import take_what_is_there
from quarterdeck.localcluster.node.sandbox.starting import CommandLine
from quarterdeck.log import get_logger

log = get_logger("node.commands")

MAX_OUTPUT = 10 * 1024
"""Bytes that are kept of what a command in a container writes, as the kubelet does."""
END_TIMEOUT = 5.0
"""Seconds until a command that was told to end is left to itself."""

_CHUNK = 65536


class Command:
    """A command that runs now, and the beginning of its output."""

    def __init__(self, line: CommandLine) -> None:
        self._loop = asyncio.get_running_loop()
        self.output = b""
        self.ended: asyncio.Future[int] = self._loop.create_future()
        self._out, their_end = os.pipe()
        try:
            self._program = subprocess.Popen(
                line.command,
                stdin=subprocess.DEVNULL,
                stdout=their_end,
                stderr=subprocess.STDOUT,
                pass_fds=line.descriptors,
                env={},
                start_new_session=True,
            )
        except BaseException:
            os.close(self._out)
            raise
        finally:
            os.close(their_end)
        self._watch = os.pidfd_open(self._program.pid)
        os.set_blocking(self._out, False)
        self._loop.add_reader(self._out, self._take)
        self._loop.add_reader(self._watch, self._finish)

    async def wait(self, seconds: float) -> int | None:
        """Its exit code; None if it did not end in time, and was ended."""
        try:
            await asyncio.wait([self.ended], timeout=seconds)
        except asyncio.CancelledError:
            await self._end()
            raise
        if self.ended.done():
            return self.ended.result()
        await self._end()
        return None

    async def _end(self) -> None:
        # What entered the container ends the command, and all that the command started.
        os.kill(self._program.pid, signal.SIGTERM)
        await asyncio.wait([self.ended], timeout=END_TIMEOUT)
        if not self.ended.done():
            log.warning("a command does not end", pid=self._program.pid)

    def _take(self) -> None:
        with suppress(BlockingIOError):
            if chunk := os.read(self._out, _CHUNK):
                self._keep(chunk)
            else:
                self._loop.remove_reader(self._out)

    def _keep(self, chunk: bytes) -> None:
        self.output += chunk[: MAX_OUTPUT - len(self.output)]

    def _finish(self) -> None:
        self._loop.remove_reader(self._watch)
        self._loop.remove_reader(self._out)
        code = self._program.wait()
        take_what_is_there(self._out, self._keep)
        os.close(self._watch)
        os.close(self._out)
        self.ended.set_result(code if code >= 0 else 128 - code)
