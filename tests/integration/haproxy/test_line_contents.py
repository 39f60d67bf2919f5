"""What the variables of the environment do to the lines that a real HAProxy sends over UDP."""

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.haproxy_process import request, running_haproxy
from tests.http_backend import http_backend

from quarterdeck.haproxy.access_log import FACILITIES, AccessLog, Capture, access_log
from quarterdeck.haproxy.access_log_lines import access_log_lines
from quarterdeck.operators.ingress.sample_line import sample_line


@contextlib.contextmanager
def logging_haproxy(
    directory: Path, address: str = "127.0.0.1", **variables: str
) -> Iterator[socket.socket]:
    """HAProxy with these variables; the socket of its syslog endpoint."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as receiver:
        receiver.bind((address, 0))
        receiver.settimeout(30)
        host = f"[{address}]" if ":" in address else address
        environment = {
            "ROUTER_SYSLOG_ADDRESS": f"{host}:{receiver.getsockname()[1]}",
            "ROUTER_LOG_LEVEL": "info",
            **variables,
        }
        lines = access_log_lines(access_log(environment))
        config = "\n".join(
            (
                *lines.global_section,
                *("defaults", "mode http", "timeout client 30s", *lines.defaults),
                *("frontend public", f"bind {directory}/public.sock", *lines.frontend),
                "default_backend web\n",
            )
        )
        with http_backend("web") as port:
            server = (
                f"backend web\ntimeout connect 5s\ntimeout server 30s\nserver s 127.0.0.1:{port}\n"
            )
            with running_haproxy(config + server, directory):
                yield receiver


def send(directory: Path, path: str = "/", *headers: str) -> None:
    head = "".join(f"{header}\r\n" for header in headers)
    assert b" 200 " in request(directory / "public.sock", f"GET {path} HTTP/1.0\r\n{head}\r\n")


def test_each_facility_has_its_number(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(30)
        config = "defaults\nmode http\ntimeout client 30s\n"
        for name in FACILITIES:
            environment = {
                "ROUTER_SYSLOG_ADDRESS": f"127.0.0.1:{receiver.getsockname()[1]}",
                "ROUTER_LOG_LEVEL": "info",
                "ROUTER_LOG_FACILITY": name,
            }
            log = access_log_lines(access_log(environment)).global_section[0]
            config += f"frontend {name}\nbind {tmp_path}/{name}.sock\n{log}\noption httplog\n"
            config += "http-request return status 200\n"
        with running_haproxy(config, tmp_path):
            for number, name in enumerate(FACILITIES):
                request(tmp_path / f"{name}.sock")
                assert receiver.recv(4096).startswith(f"<{number * 8 + 6}>".encode())


def test_lines_go_to_an_ipv6_endpoint_with_the_host_name(tmp_path: Path) -> None:
    with logging_haproxy(tmp_path, "::1") as receiver:
        send(tmp_path, "/hello")
        line = receiver.recv(4096).decode()
        assert line.startswith("<142>")
        assert f" {socket.gethostname()} haproxy[" in line
        assert '"GET /hello HTTP/1.0"' in line


@pytest.mark.parametrize(
    ("cookie", "captured"),
    [("foo=:9", " foo=xyzzy "), ("foo:256", " foobar=123 ")],
    ids=["exact", "prefix"],
)
def test_headers_and_a_cookie_are_captured_up_to_their_lengths(
    tmp_path: Path, cookie: str, captured: str
) -> None:
    with logging_haproxy(
        tmp_path,
        ROUTER_CAPTURE_HTTP_REQUEST_HEADERS="Host:15,Referer:4",
        ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS="Server:4",
        ROUTER_CAPTURE_HTTP_COOKIE=cookie,
    ) as receiver:
        cookies = "Cookie: foobar=123; foo=xyzzypop; foobaz=abc"
        send(tmp_path, "/", "Host: shop.example", "Referer: elsewhere", cookies)
        line = receiver.recv(4096).decode()
        assert captured in line
        assert "{shop.example|else} {Base}" in line


FRAMING = (
    *("Content-length", "Transfer-Encoding", "Connection", "Expect", "TE", "Trailer", "Upgrade"),
    *("Keep-Alive", "Sec-WebSocket-Key"),
)


async def test_a_sample_has_a_line_though_headers_of_framing_are_captured() -> None:
    captures = tuple(Capture(name, 20) for name in FRAMING)
    log = AccessLog(
        address="/unused", level="info", request_headers=captures, response_headers=captures
    )
    line = await sample_line(log)
    assert line is not None
    assert " shop:web:80/s0 " in line
    assert " 200 " in line
    assert " {6|" in line
    assert '"GET /cart?item=42 HTTP/1.1"' in line


SLOW_TO_LISTEN = """#!{python}
import os, pathlib, socket, sys, time
place = str(pathlib.Path(sys.argv[-1]).parent / "in")
socket.socket(socket.AF_UNIX).bind(place)
time.sleep(0.3)
os.execvp("haproxy", ["haproxy", *sys.argv[1:]])
"""
"""HAProxy whose socket is there for a moment before anybody listens on it."""


async def test_a_sample_has_a_line_though_haproxy_listens_late(tmp_path: Path) -> None:
    program = tmp_path / "haproxy-late"
    program.write_text(SLOW_TO_LISTEN.format(python=sys.executable))
    program.chmod(0o755)
    log = AccessLog(address="/unused", level="info")
    assert " 200 " in (await sample_line(log, str(program)) or "no line")


def test_a_long_cookie_is_captured_in_full(tmp_path: Path) -> None:
    with logging_haproxy(tmp_path, ROUTER_CAPTURE_HTTP_COOKIE="long=:1024") as receiver:
        send(tmp_path, "/", f"Cookie: long={'x' * 500}")
        assert f" long={'x' * 500} " in receiver.recv(4096).decode()


@pytest.mark.parametrize("length", [480, 1024, 4096])
def test_a_line_is_cut_at_the_maximum_length(tmp_path: Path, length: int) -> None:
    with logging_haproxy(tmp_path, ROUTER_LOG_MAX_LENGTH=str(length)) as receiver:
        send(tmp_path, "/" + "x" * 5000)
        line = receiver.recv(65536)
        # Measured: the newline comes on top.
        assert len(line) == length + 1
        assert line.endswith(b"x\n")


@pytest.mark.parametrize("ignored", [False, True])
def test_a_connection_without_a_request_has_a_line_unless_it_is_ignored(
    tmp_path: Path, ignored: bool
) -> None:
    with logging_haproxy(tmp_path, ROUTER_DONT_LOG_NULL="true" if ignored else "") as receiver:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "public.sock"))
        if not ignored:
            assert "<BADREQ>" in receiver.recv(4096).decode()
        # The next line is that of a request: no other one came before it.
        send(tmp_path, "/next")
        assert "/next" in receiver.recv(4096).decode()
