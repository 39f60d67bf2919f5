"""Lines from the real HAProxy through the real rsyslog, in both forms of the socket."""

from pathlib import Path
from typing import Literal

import pytest
from tests.haproxy_process import datagram_socket, request, running_haproxy
from tests.rsyslog_process import running_sidecar

from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.access_log_lines import access_log_lines, canary_frontend
from quarterdeck.haproxy.sidecar import CANARY_SOCKET_NAME, returned_canary
from quarterdeck.testing.waiting import eventually

TEXT = "  two  blanks, $HOME, \"quotes\" and 'more', #, \\, é "


def config(log: AccessLog, directory: Path) -> str:
    lines = access_log_lines(log)
    sections: list[tuple[str, ...]] = [lines.global_section]
    if lines.ring_section:
        sections.append(lines.ring_section)
    sections += [
        ("defaults", "mode http", "timeout client 30s", *lines.defaults),
        ("frontend public", f"bind {directory}/public.sock", "http-request return status 200"),
        canary_frontend(log, str(directory / "canary-in.sock")),
    ]
    return "".join("".join(f"{line}\n" for line in section) for section in sections)


@pytest.mark.parametrize("form", ["stream", "datagram"])
def test_lines_arrive_as_typed_and_the_canary_comes_back(
    form: Literal["stream", "datagram"], tmp_path: Path
) -> None:
    log = AccessLog(
        address=str(tmp_path / "rsyslog.sock"),
        socket=form,
        level="info",
        max_length=8192,
        format=TEXT + "x" * 5000 + " ",
    )
    with (
        datagram_socket(tmp_path / CANARY_SOCKET_NAME) as canaries,
        running_sidecar(tmp_path) as sidecar,
        running_haproxy(config(log, tmp_path), tmp_path),
    ):
        since = set()
        for number in range(3):
            assert b" 200 " in request(tmp_path / "public.sock")
            assert b" 204 " in request(
                tmp_path / "canary-in.sock", f"GET / HTTP/1.0\r\nX-Canary: c{number}\r\n\r\n"
            )
            said = returned_canary(canaries.recv(100).decode())
            assert said is not None
            assert (said.name, said.lines) == (f"c{number}", number + 1)
            assert said.of_ring == ((0, number + 1) if form == "stream" else (0, 0))
            since.add(said.started)
        assert len(since) == 1
        lines = eventually(lambda: [at for at in sidecar.lines() if "haproxy[" in at][2:], "lines")
        assert [at.partition("]: ")[2] for at in lines] == [log.format] * len(lines)
        assert not any("c1" in at.partition("]: ")[2] for at in sidecar.lines())
