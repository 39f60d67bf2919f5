"""A client that is closed leaves no socket behind, wherever its connections were."""

import asyncio
from contextlib import suppress
from pathlib import Path

from quarterdeck.api.meta import CONFIG_MAPS
from quarterdeck.kube import Client, Connection
from quarterdeck.kube.connection import verified_tls


def open_sockets() -> set[str]:
    """The sockets of this process, as the kernel names them."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the directory's own descriptor
            found.add(str(descriptor.readlink()))
    return {one for one in found if one.startswith("socket:")}


async def test_a_handshake_that_is_broken_off_is_closed_with_the_client() -> None:
    """asyncio would wait 30 s for the farewell of a peer that has not even greeted."""
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()

    async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await accepted.put(writer)

    silent = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    before = open_sockets()
    connection = Connection(server=f"https://127.0.0.1:{port}", tls=verified_tls())
    async with Client(connection) as client:
        asking = asyncio.create_task(client.get(CONFIG_MAPS, "a", "default"))
        theirs = await asyncio.wait_for(accepted.get(), 30)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
    left = open_sockets() - before
    theirs.close()
    await theirs.wait_closed()
    silent.close()
    await silent.wait_closed()
    assert len(left) == 1, "only the server's end is still open"
