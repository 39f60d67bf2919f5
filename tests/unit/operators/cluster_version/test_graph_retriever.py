"""When the update service last answered, as the retriever remembers it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import msgspec
import pytest
from tests.unit.update_graph.graphs import graph

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.operators.cluster_version.retrieval.graphs import GraphRetriever
from quarterdeck.update_graph.retrieve import GraphQuery

MINUTE = timedelta(minutes=1)
START = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


class Service:
    """An update service with one answer at a time."""

    body = graph(("1.0.0", "1.1.0"), (0, 1))
    address = ""


@pytest.fixture
def service() -> Iterator[Service]:
    one = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(one.body)))
            self.end_headers()
            self.wfile.write(one.body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        one.address = f"http://127.0.0.1:{server.server_port}/graph"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield one
        server.shutdown()
        thread.join()


async def test_the_time_of_the_last_good_answer_is_kept(service: Service) -> None:
    """It moves with each answer, without a write; a failure and a new version leave it."""
    clock, woken = [START], []
    retriever = GraphRetriever(MINUTE, lambda: "", MINUTE, lambda: clock[0])
    retriever.wake = lambda: woken.append(clock[0])
    query = GraphQuery(upstream=service.address, channel="stable", version="1.0.0", cluster_id="")
    retriever.want(query)
    for _ in range(3):
        await retriever._ask(Retries(Backoff()))
        assert retriever.news.answered == clock[0]
        clock[0] += MINUTE
    assert woken == [START]

    service.body = b"no graph"
    await retriever._ask(Retries(Backoff()))
    assert retriever.news.failed is not None
    assert retriever.news.answered == START + 2 * MINUTE
    retriever.want(msgspec.structs.replace(query, version="1.1.0"))
    assert retriever.news.answered == START + 2 * MINUTE
    # What another channel answered says nothing of this one.
    retriever.want(msgspec.structs.replace(query, channel="fast"))
    assert retriever.news.answered is None
