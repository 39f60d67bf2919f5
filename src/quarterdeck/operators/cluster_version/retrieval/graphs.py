"""Asks the update service for its graph, periodically, and soon again after a failure.

The last good graph stays while the service does not answer: which updates are known does not depend
on whether it is up just now.
"""

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.log import DEBUG, get_logger
from quarterdeck.update_graph.model import UpdateGraph
from quarterdeck.update_graph.retrieve import (
    RETRIEVAL_LIMIT,
    GraphNotRetrieved,
    GraphQuery,
    retrieve_graph,
)
from quarterdeck.web import Web, WebError

if TYPE_CHECKING:
    from collections.abc import Callable

log = get_logger("operators.cluster-version.graph")

MAX_WAIT = 600.0
"""The most seconds until a busy service is asked again, whatever it asks for."""


class GraphNews(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the service in the spec."""

    query: GraphQuery | None = None
    graph: UpdateGraph | None = None
    """The last good graph; None if there was none yet."""
    answered: datetime | None = None
    """When the service gave it; None if there was none yet."""
    failed: GraphNotRetrieved | None = None
    """Why the last retrieval failed; None if it did not, or is under way."""


class GraphRetriever:
    """Asks for one graph in a task, and has the news about it."""

    def __init__(
        self,
        interval: timedelta,
        ca_file: "Callable[[], str]",
        timeout: timedelta,
        now: "Callable[[], datetime]",
    ) -> None:
        self._interval = interval.total_seconds()
        self._ca_file = ca_file
        self._limit = min(RETRIEVAL_LIMIT, timeout.total_seconds())
        self._now = now
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
        self.news = GraphNews(
            query=query,
            graph=self.news.graph if same else None,
            answered=self.news.answered if same else None,
        )
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
            wait = max(retries.next(), min(news.failed.again_in, MAX_WAIT))
            log.info("graph not retrieved", why=str(news.failed), again_in=wait)
        if query == self.news.query:
            was, self.news = self.news, news
            if not _same(news, was):
                self.wake()
        return wait

    async def _retrieved(self, query: GraphQuery) -> GraphNews:
        try:
            async with Web(ca_file=self._ca_file()) as web:
                graph = await retrieve_graph(web, query, self._limit)
        except GraphNotRetrieved as failed:
            return self._failed(query, failed)
        except WebError as error:  # the CA bundle
            cause = GraphNotRetrieved("RemoteFailed", error.message, error.remedy)
            return self._failed(query, cause)
        except Exception as error:  # one of ours; this task must not end the operator
            log.exception("graph not retrieved", channel=query.channel)
            cause = GraphNotRetrieved(
                "InternalError",
                f"the operator itself failed: {type(error).__name__}",
                "look at its log; the service is asked again",
            )
            return self._failed(query, cause)
        log.v(DEBUG).info("graph retrieved", nodes=len(graph.nodes))
        return GraphNews(query=query, graph=graph, answered=self._now())

    def _failed(self, query: GraphQuery, cause: GraphNotRetrieved) -> GraphNews:
        """The news after a failure: the graph from before still counts."""
        return GraphNews(
            query=query, graph=self.news.graph, answered=self.news.answered, failed=cause
        )


def _same(one: GraphNews, other: GraphNews) -> bool:
    """Whether both say the same; the time of an answer is told only after the next failure."""
    return one.graph == other.graph and str(one.failed or "") == str(other.failed or "")
