"""The kubelet's log endpoint, for the API server only.

`kubectl logs` asks the API server, which asks this endpoint with its own client certificate. Any
other client is refused. The API server decides who may read which logs.
"""

import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from pathlib import Path

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from quarterdeck.localcluster.certificates import SIMULATED_KUBELET
from quarterdeck.localcluster.node.logs.query import BadQueryError, LogQuery, parse_query
from quarterdeck.log import get_logger

log = get_logger("node.logs")


class NoLogError(Exception):
    """There is no such log; the message gives the reason."""


INSTEAD = {
    "exec": "kubectl exec does not work on this node; use: "
    "quarterdeck local exec {cluster}--namespace {namespace} {pod} -- COMMAND",
    "attach": "kubectl attach does not work on this node; use: "
    "kubectl logs --follow --namespace {namespace} {pod}",
    "portForward": "kubectl port-forward does not work on this node; connect to the pod's address, "
    "which is one of this machine's",
}
"""The kubelet's other calls, and what to use instead."""

SIMULATED = (
    "{namespace}/{pod} is simulated: no process runs for it, so it has no log, and no command can "
    "run in it; a pod with the image quarterdeck is a process of this machine: see "
    "docs/local-cluster.md"
)
"""The answer for the pods of the node `simulated`, which has no kubelet of its own."""

Open = Callable[[str, str, str, LogQuery], AsyncGenerator[bytes, None]]
"""The log of a container, by namespace, pod, container and query; raises `NoLogError`."""


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoint's certificate, and its only client."""

    certificate: Path
    key: Path
    authority: Path
    """The authority of the client certificates."""
    port: int = 0
    client: str
    """The common name of the only client."""
    cluster: str = ""
    """The options that select this cluster in a `quarterdeck local` command."""

    def tls(self) -> ssl.SSLContext:
        """A TLS context that requires a client certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        context.load_verify_locations(self.authority)
        context.verify_mode = ssl.CERT_REQUIRED
        return context


class LogServer:
    """Serves logs on a port of 127.0.0.1."""

    def __init__(self, serving: Serving, open_log: Open) -> None:
        self._serving = serving
        self._open = open_log

    async def start(self) -> int:
        """Start serving, and return the port; port 0 selects a free one."""
        app = web.Application(middlewares=[self._only_the_api_server, _say_simulated])
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        for call in INSTEAD:
            app.router.add_route(
                "*", f"/{{call:{call}}}/{{namespace}}/{{pod}}{{rest:.*}}", self._instead
            )
        # Cancels the handler of a reader that disconnects, also while nothing is written.
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=1
        )
        await self._runner.setup()
        site = web.TCPSite(
            self._runner, "127.0.0.1", self._serving.port, ssl_context=self._serving.tls()
        )
        await site.start()
        port = int(self._runner.addresses[0][1])
        other = web.TCPSite(self._runner, SIMULATED_KUBELET, port, ssl_context=self._serving.tls())
        try:
            await other.start()
        except OSError as error:
            # Another program has that port there. The simulated pods then answer with an error.
            log.warning("cannot answer for simulated pods", error=str(error))
        return port

    async def stop(self) -> None:
        """End all responses."""
        await self._runner.cleanup()

    @web.middleware
    async def _only_the_api_server(
        self, request: web.Request, handler: Handler
    ) -> web.StreamResponse:
        certificate = request.get_extra_info("peercert") or {}
        if _common_name(certificate) != self._serving.client:
            return web.Response(status=403, text="only the API server is answered here\n")
        return await handler(request)

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        place = request.match_info
        try:
            query = parse_query(request.query)
            chunks = self._open(place["namespace"], place["pod"], place["container"], query)
            answer = web.StreamResponse(headers={"Content-Type": "text/plain"})
            await answer.prepare(request)
            async with aclosing(chunks):
                async for chunk in chunks:
                    await answer.write(chunk)
        except (BadQueryError, NoLogError) as error:
            return web.Response(status=400, text=f"{error}\n")
        return answer

    async def _instead(self, request: web.Request) -> web.Response:
        """The answer to a call that this node does not have; kubectl shows its text."""
        place = request.match_info
        cluster = f"{self._serving.cluster} " if self._serving.cluster else ""
        text = INSTEAD[place["call"]].format(
            cluster=cluster, namespace=place["namespace"], pod=place["pod"]
        )
        return web.Response(status=501, text=text)


@web.middleware
async def _say_simulated(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer all that the API server asks of the simulated node with one sentence."""
    address = request.get_extra_info("sockname")
    place = request.match_info
    if address is None or address[0] != SIMULATED_KUBELET or "pod" not in place:
        return await handler(request)
    text = SIMULATED.format(namespace=place["namespace"], pod=place["pod"])
    return web.Response(status=501, text=text)


def _common_name(certificate: Mapping[str, object]) -> str:
    subject = certificate.get("subject") or ()
    assert isinstance(subject, tuple)  # noqa: S101  # as the ssl module has it
    return next((value for part in subject for name, value in part if name == "commonName"), "")
