"""The download route, against a real server on loopback that serves small stand-in programs."""

import hashlib
import io
import os
import socket
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from quarterdeck.localcluster.binaries import BinariesUnavailable, BinarySettings, ensure_binaries
from quarterdeck.localcluster.binaries.progress import LineProgress

Answer = Callable[[BaseHTTPRequestHandler], None]

KUBECTL = b"#!/bin/sh\necho kubectl\n" + b"#" * 300_000
KUBECTL_PATH = "/k8s/release/v1.36.4/bin/linux/amd64/kubectl"
ETCD = b"#!/bin/sh\necho etcd\n"
ETCD_PATH = "/etcd/v3.6.8/etcd-v3.6.8-linux-amd64.tar.gz"
KWOK_PATH = "/kwok/v0.8.0/kwok-linux-amd64"


class Server:
    """Answers by path; what is not listed is 404. `asked` has every path in order."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []
        self.release = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked.append(self.path)
                owner.answers.get(self.path, not_found)(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Keep the test's output clean."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def serve(self, path: str, content: bytes) -> None:
        self.answers[path] = lambda request: send(request, content)

    def hang(self, request: BaseHTTPRequestHandler) -> None:
        self.release.wait(60)
        request.close_connection = True


def send(request: BaseHTTPRequestHandler, content: bytes, promised: int | None = None) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(promised or len(content)))
    request.end_headers()
    request.wfile.write(content)


def not_found(request: BaseHTTPRequestHandler) -> None:
    request.send_error(404)


def checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def archive(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server.serve(KUBECTL_PATH, KUBECTL)
    server.serve(f"{KUBECTL_PATH}.sha256", checksum(KUBECTL))
    tarball = archive("etcd-v3.6.8-linux-amd64/etcd", ETCD)
    server.serve(ETCD_PATH, tarball)
    sums = b"0" * 64 + b"  other\n" + checksum(tarball) + f"  {ETCD_PATH[13:]}\n".encode()
    server.serve("/etcd/v3.6.8/SHA256SUMS", sums)
    server.serve(KWOK_PATH, b"kwok")
    server.serve(f"{KWOK_PATH}.sha256", checksum(b"kwok") + b"  kwok-linux-amd64\n")
    yield server
    server.release.set()
    server.http.shutdown()
    thread.join()
    server.http.server_close()


@pytest.fixture
def settings(server: Server, tmp_path: Path) -> BinarySettings:
    found = BinarySettings.from_environment(
        {
            "HOME": str(tmp_path),
            "QUARTERDECK_KUBERNETES_URL": f"{server.url}/k8s",
            "QUARTERDECK_ETCD_URL": f"{server.url}/etcd",
            "QUARTERDECK_KWOK_URL": f"{server.url}/kwok",
            "QUARTERDECK_BUILD": "off",
            "QUARTERDECK_CONNECT_TIMEOUT": "1",
            "QUARTERDECK_STALL_TIMEOUT": "0.5",
        }
    )
    # The same on any machine that runs the test.
    return msgspec.structs.replace(found, machine="x86_64")


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


def installed(settings: BinarySettings) -> list[str]:
    """What is in the cache, apart from the lock."""
    folder = settings.cache / "v1.36.4"
    return sorted(path.name for path in folder.iterdir() if path.is_file() and path.name != "lock")


def test_programs_are_downloaded_verified_and_installed(
    server: Server, settings: BinarySettings, out: io.StringIO
) -> None:
    names = ["kubectl", "etcd", "kwok"]
    binaries = ensure_binaries(settings, names, LineProgress(out))
    assert binaries.kubectl.read_bytes() == KUBECTL
    assert binaries.etcd.read_bytes() == ETCD
    assert binaries.kwok.read_bytes() == b"kwok"
    assert installed(settings) == sorted(names)
    host = server.url.removeprefix("http://")
    assert binaries.source == f"downloaded from {host}"
    assert out.getvalue().splitlines()[:2] == [
        f"downloading kubectl 1.36.4 from {host}",
        "downloaded kubectl 1.36.4, 0 s",
    ]
    assert not (settings.cache / "v1.36.4" / "download").exists()


def test_second_run_is_silent_and_asks_nobody(
    server: Server, settings: BinarySettings, out: io.StringIO
) -> None:
    first = ensure_binaries(settings, ["kubectl"], LineProgress(io.StringIO()))
    server.asked.clear()
    assert ensure_binaries(settings, ["kubectl"], LineProgress(out)) == first
    assert (server.asked, out.getvalue()) == ([], "")


def test_corrupt_cached_program_is_named_and_got_anew(
    settings: BinarySettings, out: io.StringIO
) -> None:
    path = ensure_binaries(settings, ["kubectl"], LineProgress(io.StringIO())).kubectl
    path.write_bytes(b"#!/bin/sh\necho something else\n")
    again = ensure_binaries(settings, ["kubectl"], LineProgress(out)).kubectl
    assert again.read_bytes() == KUBECTL
    line = f"{path} does not match its recorded checksum; getting it anew"
    assert out.getvalue().splitlines()[0] == line


def test_wrong_contents_are_refused_and_never_installed(
    server: Server, settings: BinarySettings, out: io.StringIO
) -> None:
    server.serve(f"{KUBECTL_PATH}.sha256", b"ab" * 32)
    with pytest.raises(BinariesUnavailable) as caught:
        ensure_binaries(settings, ["kubectl"], LineProgress(out))
    actual = checksum(KUBECTL).decode()
    assert str(caught.value) == (
        f"refused {server.url}{KUBECTL_PATH}: its sha256 is {actual}, but {'ab' * 32} is "
        "published; try again later, or set QUARTERDECK_DOWNLOAD=off to build from source"
    )
    assert installed(settings) == []
    assert server.asked.count(KUBECTL_PATH) == 1


def test_wrong_contents_do_not_replace_a_program_that_is_there(
    server: Server, settings: BinarySettings, out: io.StringIO
) -> None:
    path = ensure_binaries(settings, ["kubectl"], LineProgress(out)).kubectl
    path.write_bytes(b"corrupt")
    server.serve(f"{KUBECTL_PATH}.sha256", b"ab" * 32)
    with pytest.raises(BinariesUnavailable, match="refused"):
        ensure_binaries(settings, ["kubectl"], LineProgress(out))
    assert path.read_bytes() == b"corrupt"


def missing_program(server: Server) -> str:
    del server.answers[KUBECTL_PATH]
    return f"{server.url}{KUBECTL_PATH} answers 404 Not Found"


def missing_checksum(server: Server) -> str:
    del server.answers[f"{KUBECTL_PATH}.sha256"]
    return f"{server.url}{KUBECTL_PATH}.sha256 answers 404 Not Found"


def page_instead_of_checksum(server: Server) -> str:
    server.serve(f"{KUBECTL_PATH}.sha256", b"<html>log in first</html>")
    return f"{server.url}{KUBECTL_PATH}.sha256 has no checksum of kubectl"


def always_truncated(server: Server) -> str:
    half = KUBECTL[: len(KUBECTL) // 2]
    server.answers[KUBECTL_PATH] = lambda request: send(request, half, len(KUBECTL))
    return f"{server.url}{KUBECTL_PATH} ended after {len(half)} of {len(KUBECTL)} bytes"


def stalls_half_way(server: Server) -> str:
    def half_then_nothing(request: BaseHTTPRequestHandler) -> None:
        send(request, KUBECTL[:1000], len(KUBECTL))
        server.release.wait(60)

    server.answers[KUBECTL_PATH] = half_then_nothing
    return f"{server.url}{KUBECTL_PATH} sent nothing for 0.5 s"


def hangs_at_once(server: Server) -> str:
    server.answers[f"{KUBECTL_PATH}.sha256"] = server.hang
    return "is out of reach (timed out)"


def hangs_at_the_program(server: Server) -> str:
    server.answers[KUBECTL_PATH] = server.hang
    return "is out of reach (timed out)"


@pytest.mark.parametrize(
    "spoil",
    [
        missing_program,
        missing_checksum,
        page_instead_of_checksum,
        always_truncated,
        stalls_half_way,
        hangs_at_once,
        hangs_at_the_program,
    ],
)
def test_server_that_fails_is_named_and_the_next_source_is_asked(
    server: Server,
    settings: BinarySettings,
    out: io.StringIO,
    spoil: Callable[[Server], str],
) -> None:
    """The next source is building, which is off here; that error shows that it was asked."""
    reason = spoil(server)
    with pytest.raises(BinariesUnavailable, match="because QUARTERDECK_BUILD is off"):
        ensure_binaries(settings, ["kubectl"], LineProgress(out))
    last = out.getvalue().splitlines()[-1]
    assert last.startswith("not downloaded: kubectl 1.36.4: ")
    assert last.endswith(reason)
    assert installed(settings) == []


def test_broken_transfer_is_tried_again(
    server: Server, settings: BinarySettings, out: io.StringIO
) -> None:
    def broken_once(request: BaseHTTPRequestHandler) -> None:
        server.serve(KUBECTL_PATH, KUBECTL)
        send(request, KUBECTL[:1000], len(KUBECTL))

    server.answers[KUBECTL_PATH] = broken_once
    assert ensure_binaries(settings, ["kubectl"], LineProgress(out)).kubectl.exists()
    assert server.asked.count(KUBECTL_PATH) == 2
    assert "trying again" in out.getvalue()


def test_redirect_is_followed(server: Server, settings: BinarySettings, out: io.StringIO) -> None:
    def moved(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", f"{server.url}/elsewhere")
        request.end_headers()

    server.answers[KUBECTL_PATH] = moved
    server.serve("/elsewhere", KUBECTL)
    binaries = ensure_binaries(settings, ["kubectl"], LineProgress(out))
    assert binaries.kubectl.read_bytes() == KUBECTL


@pytest.mark.parametrize(
    ("tarball", "reason"),
    [
        pytest.param(
            archive("etcd-v3.6.8-linux-amd64/README.md", b"read me"),
            "has no file etcd-v3.6.8-linux-amd64/etcd",
            id="another file",
        ),
        pytest.param(b"no archive", "cannot be unpacked (", id="no archive"),
        pytest.param(
            archive("etcd-v3.6.8-linux-amd64/etcd", os.urandom(9000))[:-3000],
            "cannot be unpacked (",
            id="half an archive",
        ),
    ],
)
def test_archive_without_the_program_is_no_download(
    server: Server, settings: BinarySettings, out: io.StringIO, tarball: bytes, reason: str
) -> None:
    server.serve(ETCD_PATH, tarball)
    sums = checksum(tarball) + f"  {ETCD_PATH[13:]}\n".encode()
    server.serve("/etcd/v3.6.8/SHA256SUMS", sums)
    with pytest.raises(BinariesUnavailable, match="QUARTERDECK_BUILD is off"):
        ensure_binaries(settings, ["etcd"], LineProgress(out))
    assert reason in out.getvalue()
    assert installed(settings) == []


def test_server_out_of_reach_is_asked_once_for_all_its_programs(
    settings: BinarySettings, out: io.StringIO
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as closed:
        host = f"127.0.0.1:{closed.getsockname()[1]}"
    away = msgspec.structs.replace(settings, kubernetes_url=f"http://{host}")
    with pytest.raises(BinariesUnavailable, match="no source is left for kube-scheduler, kubectl,"):
        ensure_binaries(away, ["kube-scheduler", "kubectl", "kwok"], LineProgress(out))
    assert out.getvalue().splitlines()[:2] == [
        f"downloading kube-scheduler 1.36.4 from {host}",
        f"not downloaded: kube-scheduler 1.36.4: {host} is out of reach (Connection refused)",
    ]
    # What the other server has is kept, and need not be downloaded again.
    assert installed(settings) == ["kwok"]


def test_the_connect_timeout_ends_the_wait_for_a_server_that_accepts_nobody(
    settings: BinarySettings, out: io.StringIO
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0), backlog=0)) as deaf:
        address = deaf.getsockname()
        # One connection fills a backlog of none; the kernel then drops further connections.
        with closing(socket.create_connection(address)):
            away = msgspec.structs.replace(
                settings, kubernetes_url=f"http://127.0.0.1:{address[1]}", connect_timeout=0.3
            )
            with pytest.raises(BinariesUnavailable, match="QUARTERDECK_BUILD is off"):
                ensure_binaries(away, ["kubectl"], LineProgress(out))
    reason = f"127.0.0.1:{address[1]} is out of reach (timed out)"
    assert out.getvalue().splitlines()[-1] == f"not downloaded: kubectl 1.36.4: {reason}"


def test_the_connect_timeout_ends_the_wait_for_a_server_that_says_nothing(
    server: Server, settings: BinarySettings, out: io.StringIO
) -> None:
    server.answers[f"{KUBECTL_PATH}.sha256"] = server.hang
    long_stall = msgspec.structs.replace(settings, connect_timeout=0.3, stall_timeout=60.0)
    with pytest.raises(BinariesUnavailable, match="QUARTERDECK_BUILD is off"):
        ensure_binaries(long_stall, ["kubectl"], LineProgress(out))
    assert out.getvalue().splitlines()[-1].endswith(" did not answer within 0.6 s")


def test_programs_for_the_machine_at_hand_are_asked_for(
    server: Server, settings: BinarySettings, out: io.StringIO
) -> None:
    path = KUBECTL_PATH.replace("amd64", "arm64")
    server.serve(path, b"arm")
    server.serve(f"{path}.sha256", checksum(b"arm"))
    arm = msgspec.structs.replace(settings, machine="aarch64")
    assert ensure_binaries(arm, ["kubectl"], LineProgress(out)).kubectl.read_bytes() == b"arm"
    # And the cache, when it is used from another machine, does not take them for its own.
    binaries = ensure_binaries(settings, ["kubectl"], LineProgress(out))
    assert binaries.kubectl.read_bytes() == KUBECTL


def test_machine_without_released_programs_is_refused(
    server: Server, settings: BinarySettings, out: io.StringIO
) -> None:
    odd = msgspec.structs.replace(settings, machine="riscv64")
    with pytest.raises(BinariesUnavailable, match="architecture riscv64, only for amd64 and arm64"):
        ensure_binaries(odd, ["kubectl"], LineProgress(out))
    assert server.asked == []
