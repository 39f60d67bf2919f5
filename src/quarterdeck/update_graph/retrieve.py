"""Asks an update service for the graph of a channel, within limits of time and size."""

import asyncio
import platform
from urllib.parse import urlencode, urlsplit

import msgspec

from quarterdeck.update_graph.model import MAX_BYTES, GraphInvalid, UpdateGraph, parse_graph
from quarterdeck.web import BUSY, Web, WebError, retry_after, shown

RETRIEVAL_LIMIT = 60.0
"""Seconds for one retrieval."""
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class GraphQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What an update service is asked."""

    upstream: str
    channel: str
    version: str
    """The version that runs."""
    cluster_id: str


class GraphNotRetrieved(Exception):  # noqa: N818 - the state, not an error of ours
    """There is no graph: a reason for programs, what happened, and what to do."""

    def __init__(self, reason: str, message: str, remedy: str, again_in: float = 0.0) -> None:
        super().__init__(f"{message}; {remedy}")
        self.reason = reason
        self.message = message
        self.remedy = remedy
        self.again_in = again_in
        """The seconds after which a busy service wants to be asked again; 0 if it does not say."""


def query_fault(query: GraphQuery) -> GraphNotRetrieved | None:
    """Why the service cannot be asked, with the field to correct; None if it can."""
    if not query.channel:
        return GraphNotRetrieved(
            "NoChannel", "spec.channel: '': no channel is set", "set one that the service has"
        )
    try:
        parts = urlsplit(query.upstream)
        well = parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
        well = well and not parts.username and not parts.fragment and len(query.upstream) <= 2048
    except ValueError:
        well = False
    if not well:
        return GraphNotRetrieved(
            "InvalidUpstream",
            f"spec.upstream: {query.upstream[:200]!r}: not an http address",
            "write one like https://updates.example.test/graph",
        )
    return None


async def retrieve_graph(
    web: Web, query: GraphQuery, limit: float = RETRIEVAL_LIMIT
) -> UpdateGraph:
    """The graph that the service answers with; GraphNotRetrieved if there is none in time."""
    if fault := query_fault(query):
        raise fault
    try:
        async with asyncio.timeout(limit):
            data = await _get(web, query)
        return await asyncio.to_thread(parse_graph, data)
    except TimeoutError as error:
        raise GraphNotRetrieved(
            "RemoteFailed",
            f"{shown(query.upstream)}: no whole answer in {limit:.0f} seconds",
            "check the update service; it is asked again",
        ) from error
    except WebError as error:
        remedy = f"{error.remedy}, or correct spec.upstream; it is asked again"
        raise GraphNotRetrieved("RemoteFailed", error.message, remedy) from error
    except GraphInvalid as error:
        raise GraphNotRetrieved(
            "ResponseInvalid",
            f"{shown(query.upstream)}: {error}",
            "correct the update service's data, or spec.upstream; it is asked again",
        ) from error


async def _get(web: Web, query: GraphQuery) -> bytes:
    headers = {"Accept": "application/json"}
    async with web.request("GET", graph_url(query), headers=headers) as answer:
        if answer.status in BUSY:
            asked = retry_after(answer.headers)
            told = f" and asks to come back in {asked:.0f} seconds" if asked else ""
            raise GraphNotRetrieved(
                "RemoteBusy",
                f"{shown(query.upstream)}: the service is busy (status {answer.status}){told}",
                "wait; it is asked again",
                asked,
            )
        if answer.status != 200:
            raise GraphNotRetrieved(
                "ResponseFailed",
                f"{shown(query.upstream)}: status {answer.status}",
                f"check that the service has the channel {query.channel!r}, and spec.upstream;"
                " it is asked again",
            )
        return await answer.read(MAX_BYTES)


def graph_url(query: GraphQuery) -> str:
    """The address to get, with what the service may use to choose."""
    parts = urlsplit(query.upstream)
    machine = platform.machine()
    asked = urlencode(
        {
            "arch": _ARCHITECTURES.get(machine, machine),
            "channel": query.channel,
            "id": query.cluster_id,
            "version": query.version,
        }
    )
    return parts._replace(query=f"{parts.query}&{asked}" if parts.query else asked).geturl()
