"""The rules that keep the console safe, without a server."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.console.app import _every
from quarterdeck.console.limits import ATTEMPTS, EVERYBODY, PERIOD, LogInLimit
from quarterdeck.console.security import (
    CONTENT_SECURITY_POLICY,
    Arrival,
    BadForm,
    is_own_host,
    is_own_origin,
    last_address,
    parsed_form,
    safe_next,
    same_secret,
    session_cookie,
    why_no_log_in,
)
from quarterdeck.console.sessions import (
    IDLE_LIMIT,
    LINK_LIFETIME,
    LONGEST,
    MAX_SESSIONS,
    MAX_SESSIONS_OF_USER,
    OneTimeLinks,
    Sessions,
)

FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("header", "own"),
    [
        pytest.param("localhost:8443", True, id="this machine"),
        pytest.param("127.0.0.1:1", True, id="its address"),
        pytest.param("[::1]:8443", True, id="its IPv6 address"),
        pytest.param("console.example.test", True, id="a name that was given"),
        pytest.param("CONSOLE.example.test:443", True, id="in capitals, with a port"),
        pytest.param("evil.test", False, id="a name of somebody else"),
        pytest.param("localhost.evil.test", False, id="a name that begins like ours"),
        pytest.param("localhost@evil.test", False, id="a user before the name"),
        pytest.param("localhost/x", False, id="a path"),
        pytest.param("localhost:x", False, id="a port that is no number"),
        pytest.param("", False, id="none"),
    ],
)
def test_host(header: str, own: bool) -> None:
    assert is_own_host(header, ["console.example.test"]) is own


@pytest.mark.parametrize(
    ("arrival", "behind", "allowed"),
    [
        pytest.param(
            Arrival(peer="127.0.0.1", host="localhost:8443", tls=False), False, True, id="loopback"
        ),
        pytest.param(
            Arrival(peer="10.0.0.9", host="localhost:8443", tls=False), False, False, id="network"
        ),
        pytest.param(
            Arrival(peer="127.0.0.1", host="console.test", tls=False), False, False, id="name"
        ),
        pytest.param(
            Arrival(peer="127.0.0.1", host="localhost", tls=False, forwarded=True),
            False,
            False,
            id="a proxy on this machine",
        ),
        pytest.param(Arrival(peer="10.0.0.9", host="c.test", tls=True), False, True, id="TLS"),
        pytest.param(
            Arrival(
                peer="10.0.0.9", host="c.test", tls=False, forwarded_proto="https", forwarded=True
            ),
            True,
            True,
            id="behind an Ingress with TLS",
        ),
        pytest.param(
            Arrival(
                peer="10.0.0.9", host="c.test", tls=False, forwarded_proto="http", forwarded=True
            ),
            True,
            False,
            id="behind an Ingress without TLS",
        ),
        pytest.param(
            Arrival(
                peer="10.0.0.9", host="c.test", tls=False, forwarded_proto="https", forwarded=True
            ),
            False,
            False,
            id="a header that nobody vouches for",
        ),
    ],
)
def test_where_a_token_may_be_sent(arrival: Arrival, behind: bool, allowed: bool) -> None:
    assert (why_no_log_in(arrival, behind_tls=behind) == "") is allowed


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        pytest.param({}, True, id="a browser that says nothing"),
        pytest.param({"Origin": "http://localhost:1"}, True, id="our own origin"),
        pytest.param({"Origin": "https://localhost:1"}, False, id="another scheme"),
        pytest.param({"Origin": "http://localhost:2"}, False, id="another port"),
        pytest.param({"Origin": "null"}, False, id="an origin that is hidden"),
        pytest.param({"Origin": "http://evil.test"}, False, id="another host"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, False, id="another site"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, False, id="another name of the site"),
    ],
)
def test_origin(headers: dict[str, str], own: bool) -> None:
    assert is_own_origin(headers, "localhost:1", (), encrypted=False) is own


@pytest.mark.parametrize(
    "target",
    [
        "//evil.test",
        "/\\evil.test",
        "https://evil.test",
        "/%2f%2fevil.test/",
        "/a\r\nSet-Cookie: x",
        "/%0d%0aX: y",
        "",
        "evil",
        "/login",
        "/logout",
        "/link/x",
        "/live/overview",
        "/x/../y/",
    ],
)
def test_a_log_in_never_continues_elsewhere(target: str) -> None:
    assert safe_next(target) == "/"


@pytest.mark.parametrize("target", ["/", "/operators/dns", "/?state=bad&q=a", "/release"])
def test_a_log_in_continues_at_a_page_of_ours(target: str) -> None:
    assert safe_next(target) == target


@given(st.text())
def test_whatever_is_asked_for_the_next_page_is_a_plain_path(target: str) -> None:
    found = safe_next(target)
    assert found.startswith("/")
    assert not found.startswith(("//", "/\\"))
    assert found.isascii()
    assert found.isprintable()


@given(st.binary(max_size=300))
def test_any_body_is_a_form_or_is_refused_with_4xx(body: bytes) -> None:
    status = 200
    try:
        parsed_form(FORM, body)
    except BadForm as error:
        status = error.status
    assert 200 <= status < 500


def test_a_form_of_another_type_is_refused() -> None:
    with pytest.raises(BadForm):
        parsed_form("multipart/form-data", b"a=b")


def test_a_secret_that_is_not_set_never_matches() -> None:
    assert not same_secret("", "")
    assert same_secret("a", "a")
    assert not same_secret("ä", "a")


@given(st.binary(max_size=20))
def test_any_bytes_of_a_cookie_can_be_compared(cookie: bytes) -> None:
    text = cookie.decode(errors="surrogateescape")
    assert same_secret(text, text) is bool(text)
    assert not same_secret("secret", f"{text}\udcff")


@pytest.mark.parametrize(
    ("lines", "address"),
    [
        pytest.param(["192.0.2.7"], "192.0.2.7", id="one"),
        pytest.param(["10.0.0.1, 192.0.2.7"], "192.0.2.7", id="forged in the same line"),
        pytest.param(["10.0.0.1", "192.0.2.7"], "192.0.2.7", id="forged in a line before"),
        pytest.param(["x" * 1000], "x" * 64, id="long"),
        pytest.param([], "", id="none"),
    ],
)
def test_the_address_that_attempts_count_for(lines: list[str], address: str) -> None:
    assert last_address(lines) == address


@pytest.mark.parametrize(
    ("host", "encrypted", "name"),
    [
        ("localhost:8443", False, "quarterdeck-session-8443"),
        ("[::1]:9000", False, "quarterdeck-session-9000"),
        ("localhost", False, "quarterdeck-session-80"),
        ("localhost:x", False, "quarterdeck-session-80"),
        ("console.test:443", True, "__Host-quarterdeck-session"),
    ],
)
def test_the_name_of_the_cookie(host: str, encrypted: bool, name: str) -> None:
    assert session_cookie(host, encrypted=encrypted) == name


def test_no_policy_allows_inline_script() -> None:
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "frame-ancestors 'none'" in CONTENT_SECURITY_POLICY


def test_attempts_to_log_in_are_limited_per_address() -> None:
    limit = LogInLimit()
    assert [limit.wait("a", 0.0) for _ in range(ATTEMPTS)] == [0.0] * ATTEMPTS
    assert limit.wait("a", 1.0) == PERIOD - 1.0
    assert limit.wait("b", 1.0) == 0.0
    assert limit.wait("a", PERIOD) == 0.0


def test_attempts_from_many_addresses_are_limited_together() -> None:
    limit = LogInLimit()
    assert not any(limit.wait(f"10.0.0.{number}", 0.0) for number in range(EVERYBODY))
    assert limit.wait("10.1.0.1", 0.0) > 0


def test_a_successful_log_in_forgets_the_attempts_of_its_address() -> None:
    limit = LogInLimit()
    for _ in range(ATTEMPTS):
        limit.wait("a", 0.0)
    limit.succeeded("a")
    assert limit.wait("a", 0.0) == 0.0


def test_a_successful_log_in_counts_for_all_addresses_together() -> None:
    limit = LogInLimit()
    for _ in range(EVERYBODY):
        assert limit.wait("a", 0.0) == 0.0
        limit.succeeded("a")
    assert limit.wait("a", 0.0) > 0


def test_attempts_that_are_refused_or_old_are_not_remembered() -> None:
    limit = LogInLimit()
    for number in range(3 * EVERYBODY):
        limit.wait(f"address {number}", 0.0)
    assert len(limit) == EVERYBODY
    limit.wait("later", PERIOD)
    assert len(limit) == 1


def test_a_user_ends_only_own_sessions_by_logging_in_often() -> None:
    sessions, owner, other = Sessions(), _account("owner"), _account("other")
    kept = sessions.begin(other, 0.0)
    own = [sessions.begin(owner, float(number)) for number in range(MAX_SESSIONS_OF_USER + 1)]
    assert own[0].ended.is_set()
    assert [one.ended.is_set() for one in own[1:]] == [False] * MAX_SESSIONS_OF_USER
    assert not kept.ended.is_set()


def test_there_are_never_more_sessions_than_the_limit() -> None:
    sessions = Sessions()
    for number in range(MAX_SESSIONS + 5):
        sessions.begin(_account(str(number)), float(number))
    assert len(list(sessions)) == MAX_SESSIONS


def _account(user: str) -> Any:
    return SimpleNamespace(user=user)


def test_a_link_works_once_and_for_an_hour() -> None:
    links = OneTimeLinks()
    code = links.make(0.0)
    assert links.valid(code, 1.0)
    assert links.use(code, 1.0)
    assert not links.use(code, 1.0)
    late = links.make(0.0)
    assert not links.use(late, LINK_LIFETIME)
    assert not links.use("", 0.0)


async def test_a_clean_up_that_fails_is_done_again() -> None:
    done = asyncio.Event()
    attempts: list[int] = []

    async def work() -> None:
        attempts.append(len(attempts))
        if len(attempts) < 3:
            raise RuntimeError("a fault")
        done.set()

    task = asyncio.create_task(_every(0.0, work))
    async with asyncio.timeout(10):
        await done.wait()
    task.cancel()


def test_a_session_has_an_idle_and_an_absolute_limit() -> None:
    assert 0 < IDLE_LIMIT < LONGEST
