"""What `/healthz`, `/readyz` and `/metrics` answer.

`probes` imports this module when the process has better things to wait for: the HTTP library and
that of the metrics take longer to import than all that a process needs to start its watches.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

Answer = Callable[[web.Request], Awaitable[web.Response]]
Readiness = Callable[[], Mapping[str, str]]
"""For each operator why it is not ready; empty text for one that is."""


@asynccontextmanager
async def answering(
    readiness: Readiness, registry: CollectorRegistry
) -> AsyncIterator[Callable[[], asyncio.BaseProtocol]]:
    """What answers a connection; the end of the context closes those that are open."""
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
