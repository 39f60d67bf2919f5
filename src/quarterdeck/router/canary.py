"""Sends canaries through the access log, and counts what arrives.

In Container mode a canary is a request to HAProxy's canary frontend. Its line passes HAProxy's ring
and rsyslog like every access line, and comes back on a socket of ours with rsyslog's count of
lines. In Syslog mode nothing comes back: a datagram is handed to the kernel, which may know that
the endpoint refuses.
"""

import asyncio
import secrets
import socket
from pathlib import Path

import msgspec

from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.render import CANARY_BIND
from quarterdeck.haproxy.sidecar import CANARY_SOCKET_NAME, Returned
from quarterdeck.router.admin import CommandError, ask
from quarterdeck.router.way_back import WayBack

RETURN_TIMEOUT = 5.0
"""Seconds in which a canary comes back."""


class Outcome(msgspec.Struct, frozen=True):
    """Whether access lines arrive, and why not; what rsyslog said with the canary."""

    arrives: bool
    reason: str
    message: str
    returned: Returned | None = None


class SidecarCanary:
    """Canaries to the sidecar and back."""

    def __init__(self, log: AccessLog, sockets: str) -> None:
        directory = Path(log.address).parent
        self._log = log
        self._way_in = f"{sockets}/{CANARY_BIND}"
        self.way_back = WayBack(directory / CANARY_SOCKET_NAME)

    async def try_once(self, name: str = "", limit: float | None = None) -> Outcome:
        """Send a canary, of this name if one is given, and wait until it comes back."""
        limit = RETURN_TIMEOUT if limit is None else limit
        target = Path(self._log.stream_address or self._log.address)
        if not _exists(target):
            return Outcome(
                False, "SocketMissing", f"{target} does not exist: the sidecar is not running"
            )
        name = name or secrets.token_hex(8)
        try:
            with self.way_back.expecting(name) as returned:
                try:
                    await _request(self._way_in, name)
                except (OSError, CommandError, TimeoutError) as error:
                    why = f"HAProxy did not take the canary: {error}"
                    return Outcome(False, "RouterNotServing", why)
                async with asyncio.timeout(limit):
                    said = await returned
        except TimeoutError:
            message = f"a canary line did not come back within {limit:g} s"
            return Outcome(False, "LinesDoNotArrive", message)
        except OSError as error:
            return Outcome(False, "NoWayBack", f"cannot listen on {self.way_back.path}: {error}")
        return Outcome(True, "LinesArrive", "a canary line came back from the sidecar", said)

    def close(self) -> None:
        """Stop listening for canaries."""
        self.way_back.close()


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


def _exists(path: Path) -> bool:
    return path.exists()
