"""Attacks on the console: slow and broken requests, floods, hostile texts. It goes on serving."""

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from tests.console_objects import CONFIG, conditions, operator
from tests.console_server import (
    READ_ALL,
    ConsoleServer,
    console_server,
    put_with_status,
    send,
    user_token,
)
from tests.integration.console.http_user import FORM, HttpUser

from quarterdeck.console import connections
from quarterdeck.console.pages import live, page
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.testing.waiting import eventually

HOSTILE = (
    "a\u202egnp.exe\u202c \u2066x\u2069 \x07\x1b[31mred\u200b \U000e0041 \u0301" + "\u0301" * 50
)


@pytest.fixture(scope="module")
def bare(control_plane: ControlPlane, crds: list[str]) -> Iterator[ConsoleServer]:
    """A console before a cluster without objects of ours."""
    with console_server(control_plane.kubeconfig) as running:
        yield running


@pytest.fixture(scope="module")
def token(control_plane: ControlPlane) -> str:
    return user_token(control_plane.requests(), "attacked", READ_ALL)


@pytest.fixture
def user(bare: ConsoleServer, token: str) -> HttpUser:
    someone = HttpUser(bare)
    assert someone.log_in(token).status == 303
    return someone


def connected(console: ConsoleServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", console.port), timeout=30)


def cookie_line(user: HttpUser) -> str:
    return "Cookie: " + "; ".join(f"{name}={value}" for name, value in user.cookies.items())


def test_a_request_that_never_ends_is_cut_off(
    bare: ConsoleServer, user: HttpUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_TIMEOUT", 0.3)
    monkeypatch.setattr(connections, "FIRST_BYTE_TIMEOUT", 0.3)
    with ExitStack() as stack:
        slow = [stack.enter_context(closing(connected(bare))) for _ in range(60)]
        for number, one in enumerate(slow):
            if number % 3:  # the others send nothing at all
                one.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert user.get("/").status == 200  # others are served meanwhile
        for one in slow:
            assert _rest(one) == b""  # closed, without an answer


def _rest(one: socket.socket) -> bytes:
    try:
        return one.recv(1000)
    except ConnectionResetError:
        return b""


def test_a_form_that_never_ends_is_cut_off(
    user: HttpUser, bare: ConsoleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "BODY_TIMEOUT", 0.3)
    with closing(connected(bare)) as slow:
        head = (
            f"POST /log-level HTTP/1.1\r\nHost: {user.host}\r\n{cookie_line(user)}\r\n"
            f"Content-Type: {FORM}\r\nContent-Length: 100\r\n\r\ncsrf="
        )
        slow.sendall(head.encode())
        assert slow.recv(100).startswith(b"HTTP/1.1 408 ")


def test_a_connection_that_is_in_use_is_not_cut_off(
    bare: ConsoleServer, user: HttpUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_TIMEOUT", 0.2)
    monkeypatch.setattr(connections, "FIRST_BYTE_TIMEOUT", 0.2)
    monkeypatch.setattr(live, "HEARTBEAT", 0.1)
    with closing(http.client.HTTPConnection("127.0.0.1", bare.port, timeout=30)) as kept:
        headers = {"Host": user.host, "Cookie": cookie_line(user).removeprefix("Cookie: ")}
        kept.request("GET", "/live/overview", headers=headers)
        stream = kept.getresponse()
        beats = 0
        while beats < 10:  # a second: five times as long as a request may take
            beats += stream.readline().startswith(b": still here")


def test_too_many_connections_are_refused_and_those_that_are_open_stay(
    bare: ConsoleServer, user: HttpUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(http.client.HTTPConnection("127.0.0.1", bare.port, timeout=30)) as early:
        headers = {"Host": user.host, "Cookie": cookie_line(user).removeprefix("Cookie: ")}
        early.request("GET", "/", headers=headers)
        early.getresponse().read()
        monkeypatch.setattr(connections, "MAX_CONNECTIONS", 5)
        with ExitStack() as stack:
            crowd = [stack.enter_context(closing(connected(bare))) for _ in range(20)]
            assert sum(_is_closed(one) for one in crowd) >= 15
            early.request("GET", "/", headers=headers)
            assert early.getresponse().status == 200
    eventually(lambda: user_sees(user), "the console serves again")


def _is_closed(one: socket.socket) -> bool:
    one.settimeout(0.5)
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False


def user_sees(user: HttpUser) -> bool:
    try:
        return user.get("/").status == 200
    except (OSError, http.client.HTTPException):
        return False


ASKED = b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
SENT_FORM = b"POST /login" + ASKED + b"Content-Type: application/x-www-form-urlencoded\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n\r\n",
        b"GET /login HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        b"GET http://localhost/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        b"GET //evil.test/%2f.." + ASKED + b"\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /" + ASKED + b"X: " + b"a" * 20000 + b"\r\n\r\n",
        b"GET /login" + ASKED + b"Cookie: a=" + b"b" * 60000 + b"\r\n\r\n",
        b"GET /login" + ASKED + b"X: y\r\n" * 2000 + b"\r\n",
        b"GET /login" + ASKED + b"X: a\r\n b\r\n\r\n",
        b"GET /" + b"a" * 20000 + ASKED + b"\r\n",
        b"GET /\xff\xfe" + ASKED + b"\r\n",
        b"GET /" + ASKED + b"X-A: 1\x00\r\n\r\n",
        SENT_FORM + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        b"GET / HTTP/1.1\r\n\r\n",
        SENT_FORM + b"Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n\r\na=b",
        SENT_FORM + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\na=bc",
        SENT_FORM + b"Content-Length: +3\r\n\r\na=b",
        SENT_FORM + b"Content-Length: -1\r\n\r\n",
        SENT_FORM + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        SENT_FORM + b"Transfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\nHost: evil.test\r\n\r\n",
        SENT_FORM + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\na=b",
        SENT_FORM + b"Content-Encoding: br\r\nContent-Length: 3\r\n\r\na=b",
        SENT_FORM + b"Expect: nonsense\r\nContent-Length: 3\r\n\r\na=b",
        b"BREW /" + ASKED + b"\r\n",
        b"HEAD /live/overview" + ASKED + b"\r\n",
        b"GET /" + ASKED + b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        b"CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
        b"OPTIONS *" + ASKED + b"\r\n",
        b"GET /static/x/../../../etc/passwd" + ASKED + b"\r\n",
        b"GET /static/x/%2e%2e%2fconsole.js" + ASKED + b"\r\n",
    ],
)
def test_a_request_that_is_none_is_refused(bare: ConsoleServer, sent: bytes) -> None:
    with closing(connected(bare)) as one:
        one.sendall(sent)
        answer = _rest(one)
    lines = answer.split(b"\r\n")
    assert lines[0].startswith(b"HTTP/1."), answer
    assert lines[0].split()[1][:1] in (b"3", b"4"), answer[:200]
    assert b"evil.test" not in b"".join(line for line in lines if line.startswith(b"Location"))
    assert b"Traceback" not in answer


def test_a_request_that_cannot_be_read_is_in_no_log(
    bare: ConsoleServer, caplog: pytest.LogCaptureFixture
) -> None:
    for sent in (
        b"GET /" + ASKED + b"Authorization: Bearer of-somebody\x01\r\n\r\n",
        b"GET /of-somebody\xff" + ASKED + b"\r\n",
        SENT_FORM + b"Content-Length: of-somebody\r\n\r\n",
        SENT_FORM + b"Content-Encoding: gzip\r\nContent-Length: 11\r\n\r\nof-somebody",
    ):
        with closing(connected(bare)) as one:
            one.sendall(sent)
            assert _rest(one).startswith(b"HTTP/1."), sent
    with closing(connected(bare)) as one:
        one.sendall(SENT_FORM + b"Content-Length: 100\r\n\r\ntoken=of-somebody")
        one.shutdown(socket.SHUT_WR)
        assert _rest(one) == b""
    assert not caplog.records


def test_requests_that_come_at_once_are_answered_in_their_order(bare: ConsoleServer) -> None:
    with closing(connected(bare)) as one:
        paths = (b"/healthz", b"/nowhere", b"/login", b"/")
        one.sendall(
            b"".join(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path for path in paths)
            + b"GET /healthz"
            + ASKED
            + b"\r\n"
        )
        answer = b""
        while part := _rest(one):
            answer += part
    statuses = re.findall(rb"HTTP/1.1 (\d+) ", answer)
    assert statuses == [b"200", b"404", b"200", b"303", b"200"]


@pytest.mark.parametrize("value", ["/%0d%0aSet-Cookie:%20a=b", "/operators/x%0aX-Evil:%201"])
def test_no_header_can_be_injected(bare: ConsoleServer, value: str) -> None:
    answer = HttpUser(bare).get(f"/login?next={value}")
    assert answer.headers["X-Evil"] is None
    assert "a=b" not in str(answer.headers.get_all("Set-Cookie"))


def test_hostile_texts_are_shown_as_what_they_are(
    user: HttpUser, control_plane: ControlPlane, clean_cluster: None
) -> None:
    made = operator("console-hostile", conditions(message=HOSTILE))
    put_with_status(control_plane.requests(), f"{CONFIG}/clusteroperators", made)

    def shown() -> str:
        # Its status is written after the object.
        text = user.get("/").text
        return text if "gnp.exe" in text else ""

    for text in (eventually(shown, "the operator"), user.get("/operators/console-hostile").text):
        for character in "\u202e\u202c\u2066\u2069\x07\x1b\u200b\U000e0041":
            assert character not in text
        assert "\\u202egnp.exe" in text
        assert text.count("\u0301") < 20


def test_a_huge_message_costs_a_row_and_not_a_page(
    user: HttpUser, control_plane: ControlPlane, clean_cluster: None
) -> None:
    made = operator("console-huge", conditions(message="x" * 300_000))
    put_with_status(control_plane.requests(), f"{CONFIG}/clusteroperators", made)
    # Its status is written after the object.
    eventually(lambda: "xxxx" in user.get("/operators/console-huge").text, "the message")
    assert len(user.get("/").text) < 40_000
    whole = user.get("/operators/console-huge")
    assert whole.status == 200
    assert len(whole.text) < 200_000
    assert "…" in whole.text


def test_a_flood_of_live_pages_is_limited_and_ends(user: HttpUser, bare: ConsoleServer) -> None:
    began = time.monotonic()
    with ExitStack() as stack:
        statuses = []
        for _ in range(live.MAX_STREAMS + 20):
            one = stack.enter_context(
                closing(http.client.HTTPConnection("127.0.0.1", bare.port, timeout=30))
            )
            headers = {"Host": user.host, "Cookie": cookie_line(user).removeprefix("Cookie: ")}
            one.request("GET", "/live/overview", headers=headers)
            statuses.append(one.getresponse().status)
        assert statuses.count(200) == live.MAX_STREAMS
        assert statuses.count(429) == 20
        assert user.get("/").status == 200
    eventually(lambda: user.get("/live/nothing").status == 404, "the others are served")
    assert bare.watches() <= 6, began


def test_a_token_that_is_revoked_ends_the_session(
    bare: ConsoleServer, control_plane: ControlPlane
) -> None:
    leaver = HttpUser(bare)
    requests = control_plane.requests()
    assert leaver.log_in(user_token(requests, "console-leaver", READ_ALL)).status == 303
    assert leaver.get("/").status == 200
    send(requests, "DELETE", "/api/v1/namespaces/default/serviceaccounts/console-leaver")

    def refused() -> bool:
        # A form asks the API server at once; pages notice it within seconds.
        answer = leaver.post("/release", {"csrf": leaver.csrf(), "version": "1", "sure": "yes"})
        return answer.status in (303, 403) and "/login" in str(answer.headers.get("Location", ""))

    eventually(refused, "the session ends", 60)
    assert leaver.get("/").headers["Location"] == "/login"


def test_nothing_that_pages_embed_can_end_their_script_or_their_attribute(
    user: HttpUser, control_plane: ControlPlane, clean_cluster: None
) -> None:
    breaking = "\"'><script>x</script><!-- </script> ${x} {{ 7*7 }} {% raw %} \u2028\u2029"
    made = operator("console-breaking", conditions(message=breaking), version=breaking)
    made["status"]["relatedObjects"] = [
        {"group": breaking, "resource": breaking, "namespace": breaking, "name": breaking}
    ]
    put_with_status(control_plane.requests(), f"{CONFIG}/clusteroperators", made)
    eventually(lambda: "7*7" in user.get("/").text, "the message")
    for path in ("/", "/operators/console-breaking"):
        text = user.get(path).text
        assert "<script>x" not in text
        assert "7*7" in text
        assert "49" not in text.partition("7*7")[0][-20:]
        assert text.count("<script") == 1  # ours
    search = user.get("/?q=" + "%22%3E%3Cscript%3Ealert(1)%3C/script%3E").text
    assert "<script>alert" not in search
    assert json.dumps("</script>") not in search
