"""The small HTTP server of every operator process: `/healthz`, `/readyz`, `/metrics`.

It listens on loopback unless it is told otherwise. `/healthz` says that the event loop
turns; `/readyz` says for each operator whether it can work, and why not, in one line.
A replica that stands by is ready: it is as good as a standby can be.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from quarterdeck.log import get_logger

log = get_logger("controller.probes")

Answer = Callable[[web.Request], Awaitable[web.Response]]
Readiness = Callable[[], Mapping[str, str]]
"""For each operator why it is not ready; empty text for one that is."""


class ProbeAddressError(Exception):
    """The address cannot be listened on; the one line says which and why."""


@asynccontextmanager
async def serve_probes(
    address: str, readiness: Readiness, registry: CollectorRegistry
) -> AsyncIterator[str]:
    """Serve while the context lasts; gives the address, with the port that was picked for 0."""
    host, port = parse_address(address)
    app = web.Application()
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/livez", _healthz),
            web.get("/readyz", _readyz(readiness)),
            web.get("/metrics", _metrics(registry)),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise ProbeAddressError(f"probe address {address}: {error.strerror}") from error
        bound = "{}:{}".format(*runner.addresses[0][:2])
        log.info("serving probes and metrics", address=bound)
        yield bound
    finally:
        await runner.cleanup()


def parse_address(address: str) -> tuple[str, int]:
    """Host and port; `:8080` is every interface, as in Go programs."""
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise ProbeAddressError(
            f"probe address {address!r}: not host:port; an example is 127.0.0.1:8081"
        )
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - asked for


async def _healthz(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _readyz(readiness: Readiness) -> Answer:
    async def answer(_request: web.Request) -> web.Response:
        troubles = readiness()
        lines = [f"[-]{name}: {why}" if why else f"[+]{name}" for name, why in troubles.items()]
        ready = not any(troubles.values())
        text = "\n".join([*lines, "ready" if ready else "not ready"]) + "\n"
        return web.Response(text=text, status=200 if ready else 503)

    return answer


def _metrics(registry: CollectorRegistry) -> Answer:
    async def answer(_request: web.Request) -> web.Response:
        body = generate_latest(registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    return answer
