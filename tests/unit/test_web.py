"""Addresses of servers outside: origins, redirects, proxies, and what messages show of them."""

import pytest

from quarterdeck.web import WebError, origin, proxy_for, redirected, shown


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
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,.internal.test")
    assert proxy_for("https://r.test/v2/") == "http://proxy.test:3128"
    assert proxy_for("http://r.test/") is None
    assert proxy_for("https://127.0.0.1:5000/v2/") is None
    assert proxy_for("https://r.internal.test/") is None
