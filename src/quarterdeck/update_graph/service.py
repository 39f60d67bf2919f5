"""A small update service: the channels of a directory, over HTTP or HTTPS, until stopped."""

import asyncio
import ssl
from pathlib import Path

from aiohttp import web

from quarterdeck.log import get_logger
from quarterdeck.update_graph.channels import ChannelInvalid, channel_graph, channels

log = get_logger("update-service")

PATHS = ("/graph", "/api/upgrades_info/v1/graph")


def application(directory: Path) -> web.Application:
    """The service as an application: `/graph?channel=…`, and `/readyz`."""

    async def graph(request: web.Request) -> web.Response:
        channel = request.query.get("channel", "")
        if not channel:
            return _refused(400, "name a channel: ?channel=…")
        try:
            data = await asyncio.to_thread(channel_graph, directory, channel)
        except ChannelInvalid as error:
            log.warning("channel not served", channel=channel, error=str(error))
            return _refused(500, "the channel's file is invalid; see the service's log")
        if data is None:
            there = ", ".join(await asyncio.to_thread(channels, directory)) or "none"
            return _refused(404, f"there is no such channel; there are: {there}")
        log.info("graph served", channel=channel, version=request.query.get("version", ""))
        return web.Response(body=data, content_type="application/json")

    async def ready(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    app = web.Application(client_max_size=4096)
    for path in PATHS:
        app.router.add_get(path, graph)
    app.router.add_get("/readyz", ready)
    return app


async def serve(directory: Path, host: str, port: int, tls: ssl.SSLContext | None) -> None:
    """Serve until cancelled; log the address, with the port that was free for port 0."""
    runner = web.AppRunner(application(directory), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=tls)
        await site.start()
        (address, *_) = runner.addresses
        log.info("serving", scheme="https" if tls else "http", host=address[0], port=address[1])
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def _refused(status: int, message: str) -> web.Response:
    return web.json_response({"kind": "error", "value": message}, status=status)
