"""Relays connections from the machine's loopback into the cluster's network: FD:HOST:PORT...

Each FD is a socket that listens on the machine's loopback. This process is in the cluster's network
namespace, so its own connections go there. It ends when it is killed.
"""

import asyncio
import contextlib
import functools
import socket
import sys

CHUNK = 64 * 1024


async def serve(listener: socket.socket, host: str, port: int) -> None:
    """Accept connections on the listener, and connect each to host and port."""
    handler = functools.partial(_connected, host=host, port=port)
    server = await asyncio.start_server(handler, sock=listener)
    async with server:
        await server.serve_forever()


async def _connected(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, host: str, port: int
) -> None:
    try:
        there, back = await asyncio.open_connection(host, port)
    except OSError:  # What listens there is not up; the client sees a closed connection.
        writer.close()
        return
    with contextlib.suppress(OSError):
        await asyncio.gather(_copy(reader, back), _copy(there, writer))
    for stream in (writer, back):
        stream.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end, and hand the end on; the other direction may last longer."""
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _main(relays: list[str]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for relay in relays:
            descriptor, host, port = relay.split(":")
            listener = socket.socket(fileno=int(descriptor))
            listener.setblocking(False)
            tasks.create_task(serve(listener, host, int(port)))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1:]))
