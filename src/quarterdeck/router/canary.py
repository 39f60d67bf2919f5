"""Sends canaries through the access log, and counts what arrives.

In Container mode a canary is a request to HAProxy's canary frontend. Its line passes HAProxy's ring
and rsyslog like every access line, and comes back on a socket of ours with rsyslog's count of
lines. In Syslog mode nothing comes back: a datagram is handed to the kernel, which may know that
the endpoint refuses.
"""

import asyncio
import secrets
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.render import CANARY_BIND
from quarterdeck.haproxy.sidecar import CANARY_SOCKET_NAME
from quarterdeck.router.admin import CommandError, ask

RETURN_TIMEOUT = 5.0
"""Seconds in which a canary comes back."""
_LARGEST_DATAGRAM = 4096


class Outcome(msgspec.Struct, frozen=True):
    """Whether access lines arrive, and why not; rsyslog's count of lines since its start."""

    arrives: bool
    reason: str
    message: str
    lines: int | None = None
    started: str = ""


class SidecarCanary:
    """Canaries to the sidecar and back."""

    def __init__(self, log: AccessLog, sockets: str) -> None:
        directory = Path(log.address).parent
        self._log = log
        self._way_in = f"{sockets}/{CANARY_BIND}"
        self._way_back = directory / CANARY_SOCKET_NAME
        self._receiver: socket.socket | None = None

    async def try_once(self) -> Outcome:
        """Send a canary and wait until it comes back."""
        target = Path(self._log.stream_address or self._log.address)
        if not _exists(target):
            return Outcome(
                False, "SocketMissing", f"{target} does not exist: the sidecar is not running"
            )
        try:
            receiver = self._listen()
        except OSError as error:
            return Outcome(False, "NoWayBack", f"cannot listen on {self._way_back}: {error}")
        name = secrets.token_hex(8)
        try:
            await _request(self._way_in, name)
        except (OSError, CommandError, TimeoutError) as error:
            return Outcome(False, "RouterNotServing", f"HAProxy did not take the canary: {error}")
        try:
            async with asyncio.timeout(RETURN_TIMEOUT):
                lines, started = await _returned(receiver, name)
        except TimeoutError:
            message = f"a canary line did not come back within {RETURN_TIMEOUT:g} s"
            return Outcome(False, "LinesDoNotArrive", message)
        message = "a canary line came back from the sidecar"
        return Outcome(True, "LinesArrive", message, lines, started)

    def close(self) -> None:
        """Stop listening for canaries."""
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None

    def _listen(self) -> socket.socket:
        """The socket on which canaries come back, made again if its file is gone."""
        if self._receiver is not None and _exists(self._way_back):
            return self._receiver
        self.close()
        with suppress(FileNotFoundError):
            self._way_back.unlink()
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            receiver.setblocking(False)
            receiver.bind(str(self._way_back))
        except OSError:
            receiver.close()
            raise
        self._receiver = receiver
        return receiver


class EndpointCanary:
    """Asks the kernel whether the syslog endpoint refuses datagrams."""

    def __init__(self, log: AccessLog) -> None:
        host, _, port = log.address.rpartition(":")
        self._address = (host.strip("[]"), int(port))
        self._log = log

    async def try_once(self) -> Outcome:
        """Send an empty datagram, and see whether it is refused.

        An endpoint that does not listen answers with an ICMP message, which the kernel reports at
        the next operation on a connected socket. A firewall that drops datagrams stays unseen.
        """
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            try:
                sender.connect(self._address)
                sender.send(b"")
                await asyncio.sleep(0.1)
                sender.send(b"")
            except OSError as error:
                message = f"the endpoint {self._log.address} refuses: {error.strerror}"
                return Outcome(False, "EndpointRefuses", message)
        return Outcome(True, "HandedOver", f"lines are handed over for {self._log.address}")

    def close(self) -> None:
        """Nothing stays open."""


Canary = SidecarCanary | EndpointCanary


def canary_for(log: AccessLog, sockets: str) -> Canary:
    """The canary of an access log."""
    return SidecarCanary(log, sockets) if log.to_sidecar else EndpointCanary(log)


async def _request(path: str, name: str) -> None:
    answer = await ask(path, f"GET / HTTP/1.0\r\nX-Canary: {name}\r\n\r")
    if " 204 " not in answer.partition("\r\n")[0]:
        raise CommandError(answer[:100] or "no answer")


async def _returned(receiver: socket.socket, name: str) -> tuple[int, str]:
    loop = asyncio.get_running_loop()
    while True:
        words = (await loop.sock_recv(receiver, _LARGEST_DATAGRAM)).decode(errors="replace").split()
        if words and words[0] == name:
            # A count that was never increased is empty.
            count = words[1] if len(words) > 1 and words[1].isdigit() else ""
            return int(count or 0), " ".join(words[2 if count else 1 :])


def _exists(path: Path) -> bool:
    return path.exists()
