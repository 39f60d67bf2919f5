"""Asks the update service for its graph, periodically, and soon again after a failure.

The last good graph stays while the service does not answer: which updates are known does not depend
on whether it is up just now.
"""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.log import DEBUG, get_logger
from quarterdeck.update_graph.model import UpdateGraph
from quarterdeck.update_graph.retrieve import GraphNotRetrieved, GraphQuery, retrieve_graph
from quarterdeck.web import Web, WebError

if TYPE_CHECKING:
    from collections.abc import Callable

log = get_logger("operators.cluster-version.graph")


class GraphNews(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the service in the spec."""

    query: GraphQuery | None = None
    graph: UpdateGraph | None = None
    """The last good graph; None if there was none yet."""
    failed: GraphNotRetrieved | None = None
    """Why the last retrieval failed; None if it did not, or is under way."""


class GraphRetriever:
    """Asks for one graph in a task, and has the news about it."""

    def __init__(self, interval: timedelta, ca_file: str) -> None:
        self._interval = interval.total_seconds()
        self._ca_file = ca_file
        self.wake: Callable[[], None] = lambda: None
        self.news = GraphNews()
        self._changed = asyncio.Event()

    def want(self, query: GraphQuery | None) -> None:
        """Ask this of the service; None asks nothing."""
        known = self.news.query
        if query == known:
            return
        same = (
            known is not None
            and query is not None
            and (known.upstream, known.channel) == (query.upstream, query.channel)
        )
        # The version that runs has changed: the graph of the channel still counts meanwhile.
        self.news = GraphNews(query=query, graph=self.news.graph if same else None)
        self._changed.set()

    async def run(self) -> None:
        """Ask the service, until cancelled."""
        retries = Retries(Backoff(base=min(5.0, self._interval), limit=self._interval))
        while True:
            self._changed.clear()
            wait = await self._ask(retries)
            try:
                async with asyncio.timeout(wait):
                    await self._changed.wait()
                retries.reset()
            except TimeoutError:
                continue

    async def _ask(self, retries: Retries) -> float | None:
        """Ask once; return the seconds until the next time."""
        query = self.news.query
        if query is None:
            return None
        news = await self._retrieved(query)
        wait = self._interval
        if news.failed is None:
            retries.reset()
        else:
            wait = retries.next()
            log.info("graph not retrieved", why=str(news.failed), again_in=wait)
        if query == self.news.query and not _same(news, self.news):
            self.news = news
            self.wake()
        return wait

    async def _retrieved(self, query: GraphQuery) -> GraphNews:
        try:
            async with Web(ca_file=self._ca_file) as web:
                graph = await retrieve_graph(web, query)
        except GraphNotRetrieved as failed:
            return GraphNews(query=query, graph=self.news.graph, failed=failed)
        except WebError as error:  # the CA bundle
            cause = GraphNotRetrieved("RemoteFailed", error.message, error.remedy)
            return GraphNews(query=query, graph=self.news.graph, failed=cause)
        except Exception as error:  # one of ours; this task must not end the operator
            log.exception("graph not retrieved", channel=query.channel)
            cause = GraphNotRetrieved(
                "InternalError",
                f"the operator itself failed: {type(error).__name__}",
                "look at its log; the service is asked again",
            )
            return GraphNews(query=query, graph=self.news.graph, failed=cause)
        log.v(DEBUG).info("graph retrieved", nodes=len(graph.nodes))
        return GraphNews(query=query, graph=graph)


def _same(one: GraphNews, other: GraphNews) -> bool:
    return one.graph == other.graph and str(one.failed or "") == str(other.failed or "")
