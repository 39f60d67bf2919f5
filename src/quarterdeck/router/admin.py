"""Commands to HAProxy's sockets."""

import asyncio

from quarterdeck.haproxy.errors import HAProxyError

TIMEOUT = 10.0
"""Seconds for the answer to a command."""

_GOOD = {
    "addr": ("changed", "no need to change"),
    "commit": ("Success",),
    "cert": ("Transaction",),
}


class CommandError(HAProxyError):
    """HAProxy did not do what a command said."""


async def ask_master(socket: str, command: str) -> str:
    """The answer of the master, which waits for more commands unless it is told that none come."""
    return await ask(socket, command, end=True)


async def ask(socket: str, command: str, *, end: bool = False) -> str:
    """The answer to a command; raises `CommandError` if there is none."""
    try:
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await asyncio.open_unix_connection(socket)
            try:
                writer.write(command.encode() + b"\n")
                await writer.drain()
                if end:
                    writer.write_eof()
                return (await reader.read()).decode(errors="replace")
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        raise CommandError(f"no answer at {socket}: {error or 'too late'}") from error


async def order(socket: str, command: str) -> None:
    """Give a command of `runtime_commands`; raises `CommandError` if HAProxy refuses it."""
    answer = (await ask(socket, command)).strip()
    if not _is_good(command, answer):
        what = command.partition("\n")[0]
        raise CommandError(f"{what}: {answer or 'no answer'}")


def _is_good(command: str, answer: str) -> bool:
    words = command.split(maxsplit=6)
    if words[0] == "commit":
        expected = _GOOD["commit"]
    elif words[1] == "ssl":
        expected = _GOOD["cert"]
    elif words[3] == "addr":
        expected = _GOOD["addr"]
    else:  # a change of state is confirmed by silence
        return not answer
    return any(word in answer for word in expected)
