"""Addresses of servers outside: origins, redirects, proxies, and what messages show of them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import msgspec
import pytest

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.operators.cluster_version.retrieval.graphs import GraphRetriever
from quarterdeck.update_graph.retrieve import GraphQuery
from quarterdeck.web import Web, WebError, is_address, origin, proxy_for, redirected, shown


def test_origins() -> None:
    assert origin("https://R.test/a") == origin("https://r.test:443/b")
    assert origin("https://r.test/") != origin("https://r.test:8443/")
    assert origin("http://r.test/") != origin("https://r.test/")


@pytest.mark.parametrize(
    ("url", "to", "target"),
    [
        ("https://r.test/a/b", "c", "https://r.test/a/c"),
        ("https://r.test/a", "//s.test/x", "https://s.test/x"),
        ("http://r.test/a", "https://s.test/x", "https://s.test/x"),
        ("http://r.test/a", "http://s.test/x", "http://s.test/x"),
    ],
)
def test_redirects(url: str, to: str, target: str) -> None:
    assert redirected(url, to) == target


@pytest.mark.parametrize("to", ["http://r.test/a", "file:///etc/passwd", "javascript:x"])
def test_redirects_out_of_tls_are_refused(to: str) -> None:
    with pytest.raises(WebError, match="not protected by TLS"):
        redirected("https://r.test/a", to)


def test_messages_show_neither_credentials_nor_queries() -> None:
    assert shown("https://user:word@r.test:1/a?token=secret#x") == "https://r.test:1/a"


def test_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,.internal.test,10.0.0.0/8,p.test:5000")
    assert proxy_for("https://r.test/v2/") == "http://proxy.test:3128"
    assert proxy_for("http://r.test/") is None
    assert proxy_for("https://127.0.0.1:5000/v2/") is None
    assert proxy_for("https://r.internal.test/") is None
    assert proxy_for("https://10.1.2.3/v2/") is None
    assert proxy_for("https://p.test:5000/v2/") is None
    assert proxy_for("https://p.test/v2/") == "http://proxy.test:3128"
    monkeypatch.setenv("https_proxy", "proxy.test:3128")
    assert proxy_for("https://r.test/v2/") == "http://proxy.test:3128"


@pytest.mark.parametrize(
    ("proxy", "message"),
    [
        ("socks5://user:word@p.test:1080", "HTTPS_PROXY: 'socks5://p.test:1080': only http and"),
        ("http://[::1", "HTTPS_PROXY: is not an address"),
        ("http://", "HTTPS_PROXY: has no host"),
    ],
)
async def test_a_proxy_of_another_kind_is_refused_and_not_spoken_to_as_http(
    monkeypatch: pytest.MonkeyPatch, proxy: str, message: str
) -> None:
    """Its password is in no message."""
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("NO_PROXY", "exempt.test")
    async with Web() as web:
        with pytest.raises(WebError) as raised:
            async with web.request("GET", "https://r.test/"):
                pass
    assert raised.value.message.startswith(message)
    assert "word" not in raised.value.message + raised.value.remedy
    assert proxy_for("https://exempt.test/") is None


@pytest.mark.parametrize("to", ["https://h.test:99999/", "https://[bad/", "//h.test:x/"])
def test_a_redirect_to_what_is_no_address_is_told(to: str) -> None:
    with pytest.raises(WebError, match="redirects to something that is no address") as seen:
        redirected("https://r.test/a", to)
    assert seen.value.remedy


def test_what_is_no_address_is_not_shown() -> None:
    assert shown("https://[bad/?token=secret") == "something that is no address"
    assert not is_address("https://[bad/")
    assert not is_address("https://h.test:99999/")
    assert is_address("https://h.test/token")


class Answers(BaseHTTPRequestHandler):
    """Answers as a proxy that wants to be paid, with a redirect to nowhere, or with no HTTP."""

    def do_CONNECT(self) -> None:
        self.send_response(407, "Pay first")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        if self.path == "/garbage":
            self.wfile.write(b"\x1b[2J\xff\r\n\r\n")
            return
        strange = "http://127.0.0.1:1/\xff\x1b[2J\x85"
        target = strange if self.path == "/strange" else "https://h.test:99999/?token=secret"
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as one:
        Thread(target=one.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{one.server_port}"
        one.shutdown()


async def test_the_password_of_a_proxy_is_not_told(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", f"http://user:pass-word@{server}")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("NO_PROXY", "")
    async with Web() as web:
        with pytest.raises(
            WebError, match="the proxy refuses the connection: status 407 Pay first"
        ) as seen:
            async with web.request("GET", "https://r.test/a?token=secret"):
                pass
    assert "pass-word" not in seen.value.message
    assert "secret" not in seen.value.message


async def test_an_address_that_cannot_be_asked_is_not_told() -> None:
    async with Web() as web:
        with pytest.raises(WebError, match="no connection") as seen:
            async with web.request("GET", "https://r test:0x/?token=secret"):
                pass
    assert "secret" not in seen.value.message


@pytest.mark.parametrize(
    ("path", "told"), [("strange", "no connection"), ("garbage", "the answer is not HTTP")]
)
async def test_a_message_can_be_shown_and_stored_whatever_the_server_sends(
    server: str, path: str, told: str
) -> None:
    """Bytes that are no text would be in a condition, and no status could be written any more."""
    async with Web() as web:
        with pytest.raises(WebError, match=told) as seen:
            async with web.request("GET", f"http://{server}/{path}"):
                pass
    assert msgspec.json.encode(seen.value.message)
    assert seen.value.message.isprintable()


async def test_a_redirect_to_nowhere_ends_neither_the_task_nor_the_graph(server: str) -> None:
    """A fault of a service, and one of ours, are told in the news."""
    minute = timedelta(minutes=1)
    retriever = GraphRetriever(minute, lambda: "", minute, lambda: datetime.now(UTC))
    query = GraphQuery(
        upstream=f"http://{server}/graph", channel="stable", version="1.0.0", cluster_id=""
    )
    retriever.want(query)
    assert await retriever._ask(Retries(Backoff())) is not None
    assert retriever.news.failed is not None
    assert retriever.news.failed.reason == "RemoteFailed"
    assert "no address" in retriever.news.failed.message
    retriever.want(msgspec.structs.replace(query, upstream=None))
    await retriever._ask(Retries(Backoff()))
    assert retriever.news.failed.reason == "InternalError"
