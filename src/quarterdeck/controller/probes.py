"""The small HTTP server of every operator process: `/healthz`, `/readyz`, `/metrics`.

It listens on loopback by default. `/healthz` answers while the event loop runs; `/readyz` says for
each operator whether it can work and, in one line, why not. A replica that does not lead is ready
too.

The address is bound first, so that a process whose address is in use ends before it does anything.
Requests are answered later, while the first lists are under way.
"""

import asyncio
import importlib
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from quarterdeck import log as logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

    from quarterdeck.controller.probe_server import Readiness

log = logs.get_logger("controller.probes")


class ProbeAddressError(Exception):
    """The process cannot listen on the address; the message says why, in one line."""


class Probes:
    """The probes' address: entering the context binds it, `serve` answers requests."""

    _listener: asyncio.Server

    def __init__(self, address: str) -> None:
        self._address = address
        self._host, self._port = parse_address(address)
        self._answering: Callable[[], asyncio.BaseProtocol] = asyncio.Protocol
        self._served = AsyncExitStack()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        hosts = [self._host] if self._host else [None, "0.0.0.0"]  # noqa: S104 - asked for
        for host in hosts:
            try:
                self._listener = await loop.create_server(
                    lambda: self._answering(), host, self._port, start_serving=False
                )
                return self
            except OSError as error:
                # The second is for a machine without IPv6.
                if host == hosts[-1]:
                    raise self._refused(error) from error
        raise AssertionError("there is at least one host")

    async def __aexit__(self, *_exc: object) -> None:
        self._listener.close()
        await self._served.aclose()

    async def load(self) -> None:
        """Import the server in a thread, because the event loop has the first lists to send."""
        await asyncio.to_thread(_load)

    async def serve(self, readiness: "Readiness", registry: "CollectorRegistry") -> str:
        """Answer requests from now on; return the address, with the chosen port for port 0."""
        from quarterdeck.controller.probe_server import answering

        self._answering = await self._served.enter_async_context(answering(readiness, registry))
        try:
            await self._listener.start_serving()
        except OSError as error:
            raise self._refused(error) from error
        bound = "{}:{}".format(*self._listener.sockets[0].getsockname()[:2])
        log.info("serving probes and metrics", address=bound)
        return bound

    def _refused(self, error: OSError) -> ProbeAddressError:
        return ProbeAddressError(f"probe address {self._address}: {error.strerror}")


def _load() -> None:
    importlib.import_module("quarterdeck.controller.probe_server")
    logs.prepare()


def parse_address(address: str) -> tuple[str, int]:
    """Host and port; no host in `:8080` means every interface, as in Go programs."""
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise ProbeAddressError(
            f"probe address {address!r}: not host:port; an example is 127.0.0.1:8081"
        )
    return host.strip("[]"), int(port)
