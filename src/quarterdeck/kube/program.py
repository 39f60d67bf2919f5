"""Runs a program for what it writes, bounded in time and bytes; an exec plugin is one.

Its pipes are ours and not asyncio's: there the end of a process waits for the end of its pipes, and
a child that it left behind may hold those for ever.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple


class TooMuch(Exception):  # noqa: N818 - reads as what happened
    """A program wrote more than it may."""


class Output(NamedTuple):
    """What a program that has ended wrote."""

    exit_code: int
    out: bytes
    err: bytes


class _Pipe:
    """What the program writes into one of its two outputs."""

    def __init__(self, reader: asyncio.StreamReader, writing: int) -> None:
        self._reader = reader
        self.writing = writing

    async def content(self, limit: int) -> bytes:
        """All of it; `TooMuch` if that is more than so many bytes."""
        content = bytearray()
        while part := await self._reader.read(1 << 16):
            content += part
            if len(content) > limit:
                raise TooMuch
        return bytes(content)


async def output_of(
    command: Sequence[str], env: Mapping[str, str], *, timeout: float, limit: int
) -> Output:
    """What the program wrote; an OSError, `TimeoutError` or `TooMuch` otherwise.

    One that is not waited for to its end is killed, with the children that it still has.
    """
    async with _pipe() as out, _pipe() as err:
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out.writing,
                stderr=err.writing,
                start_new_session=True,
            )
        finally:
            # Else there would be no end to read.
            os.close(out.writing)
            os.close(err.writing)
        reading = asyncio.gather(out.content(limit), err.content(limit))
        try:
            async with asyncio.timeout(timeout):
                written = await reading
                return Output(await process.wait(), *written)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            raise


@contextlib.asynccontextmanager
async def _pipe() -> AsyncIterator[_Pipe]:
    reading, writing = os.pipe()
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb", buffering=0)
    )
    try:
        yield _Pipe(reader, writing)
    finally:
        transport.close()
