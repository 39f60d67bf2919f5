"""Answers `/healthz`, `/readyz` (a router's probes say `/healthz/ready`) and `/metrics`.

`probes` imports this module while the process waits for its first lists: the libraries for HTTP and
metrics take longer to import than everything that the watches need.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

Answer = Callable[[web.Request], Awaitable[web.Response]]
Readiness = Callable[[], Mapping[str, str]]
"""By operator: why it is not ready; empty if it is ready."""


@asynccontextmanager
async def answering(
    readiness: Readiness, registry: CollectorRegistry
) -> AsyncIterator[Callable[[], asyncio.BaseProtocol]]:
    """A factory of protocols that answer requests; the end of the context closes connections."""
    app = web.Application()
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/livez", _healthz),
            web.get("/readyz", _readyz(readiness)),
            web.get("/healthz/ready", _readyz(readiness)),
            web.get("/metrics", _metrics(registry)),
        ]
    )
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        if runner.server is None:
            raise RuntimeError("the runner of the probes has no server")
        yield runner.server
    finally:
        await runner.cleanup()


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
