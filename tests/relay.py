"""`python -m tests.relay LISTEN TARGET...`: pass connections on, also between network namespaces.

Each end is `tcp:PORT` on loopback or `unix:PATH`. A Unix socket reaches every network namespace.
"""

import asyncio
import contextlib
import sys

LOOPBACK = "127.0.0.1"


async def serve(pairs: list[tuple[str, str]]) -> None:
    """Pass on what comes to the first of each pair to the second, until killed."""
    for listen, target in pairs:

        async def handle(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str = target
        ) -> None:
            with contextlib.suppress(OSError):
                try:
                    there = await connect(target)
                    async with asyncio.TaskGroup() as both:
                        both.create_task(copy(reader, there[1]))
                        both.create_task(copy(there[0], writer))
                finally:
                    writer.close()

        kind, _, where = listen.partition(":")
        if kind == "tcp":
            await asyncio.start_server(handle, LOOPBACK, int(where))
        else:
            await asyncio.start_unix_server(handle, where)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


async def connect(target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to one of the two kinds of ends."""
    kind, _, where = target.partition(":")
    if kind == "tcp":
        return await asyncio.open_connection(LOOPBACK, int(where))
    return await asyncio.open_unix_connection(where)


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end."""
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    asyncio.run(serve(list(zip(arguments[::2], arguments[1::2], strict=True))))
