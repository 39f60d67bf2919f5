"""What a user sees when the machine does not play along: one clear line each."""

import http.server
import os
import resource
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

GET = """
import os, sys
from quarterdeck.localcluster.binaries import BinariesUnavailable, BinarySettings, ensure_binaries
from quarterdeck.localcluster.binaries.catalog import CATALOG
import msgspec
# Whether a build would fit is tested elsewhere; here it must get as far as its first write.
catalog = msgspec.structs.replace(CATALOG, module_bytes={})
try:
    settings = BinarySettings.from_environment(os.environ)
    print(ensure_binaries(settings, sys.argv[1:], catalog=catalog).paths)
except BinariesUnavailable as error:
    print(error)
    sys.exit(2)
"""

MIB = 2**20


def get(cache: Path, *names: str, before: tuple[str, ...] = (), **env: str) -> str:
    """What getting these programs in a process of its own prints when it fails."""
    answer = subprocess.run(
        [*before, sys.executable, "-c", GET, *names],
        env={**os.environ, "KUBEBUILDER_ASSETS": "", "QUARTERDECK_CACHE": str(cache), **env},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert answer.returncode == 2, answer.stdout + answer.stderr
    (line,) = answer.stdout.splitlines()
    return line


@pytest.fixture
def closed() -> str:
    """An address on loopback at which nobody listens."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """A server that has kubectl, of 6 MiB; it says no length, so there is nothing to foresee."""
    content = b"#" * (6 * MIB)
    checksum = sha256(content).hexdigest()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with_checksum = self.path.endswith(".sha256")
            try:
                self.wfile.write(checksum.encode() if with_checksum else content)
            except ConnectionError:
                return

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Keep the test's output clean."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        run = partial(server.serve_forever, poll_interval=0.02)
        thread = threading.Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def small_disk(folder: Path, size: str) -> tuple[str, ...]:
    """Words to put before a command, so that it sees a small file system of its own there.

    It is mounted in a mount namespace of the command's own, and is gone with it.
    """
    folder.mkdir()
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    script = f'mount -t tmpfs -o size={size} tmpfs "$1" && shift && exec "$@"'
    words = (*namespace, "sh", "-c", script, "sh", str(folder))
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a file system, not even in a namespace of their own")
    return words


def test_disk_that_fills_during_a_download(tmp_path: Path, mirror: str) -> None:
    cache = tmp_path / "small"
    line = get(
        cache,
        "kubectl",
        before=small_disk(cache, "4m"),
        QUARTERDECK_KUBERNETES_URL=mirror,
        QUARTERDECK_BUILD="off",
    )
    assert line == (
        f"disk full: no space left for {cache}/quarterdeck/v1.36.4/download; free some, or set "
        "QUARTERDECK_CACHE to a directory on a larger disk, then run this again"
    )


def test_file_size_limit_during_a_download(tmp_path: Path, mirror: str) -> None:
    """The same line where a limit of the process and not the disk stops the write."""
    before, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert before == resource.RLIM_INFINITY or before > 6 * MIB
    line = get(
        tmp_path,
        "kubectl",
        before=("sh", "-c", 'ulimit -f 2000; exec "$@"', "sh"),
        QUARTERDECK_KUBERNETES_URL=mirror,
        QUARTERDECK_BUILD="off",
    )
    assert line.startswith(f"disk full: no space left for {tmp_path}/quarterdeck/v1.36.4/download;")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="a package of Go would not fit either")
def test_disk_that_fills_during_a_build(tmp_path: Path) -> None:
    """Go's own files fill the disk; its many words about that become ours."""
    cache = tmp_path / "small"
    line = get(
        cache,
        "etcd",
        before=small_disk(cache, "1m"),
        QUARTERDECK_DOWNLOAD="off",
    )
    assert line.startswith(f"disk full: no space left for {cache}/quarterdeck/v1.36.4/build;")


def test_neither_go_nor_network(tmp_path: Path, closed: str) -> None:
    (tmp_path / "bin").mkdir()
    line = get(
        tmp_path,
        "etcd",
        PATH=str(tmp_path / "bin"),
        QUARTERDECK_ETCD_URL=closed,
        PIP_INDEX_URL=closed,
        PIP_CONFIG_FILE=os.devnull,
        PIP_FIND_LINKS="",
        PIP_RETRIES="0",
    )
    assert line.startswith("no Go 1.26 or newer on PATH and no network to get one (")
    for remedy in ("put Go on PATH", "PIP_INDEX_URL", "QUARTERDECK_ETCD_URL", "KUBEBUILDER_ASSETS"):
        assert remedy in line


def test_go_that_is_too_old_is_not_used(tmp_path: Path, closed: str) -> None:
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text("#!/bin/sh\necho go1.25.9\n")
    go.chmod(0o755)
    line = get(
        tmp_path,
        "etcd",
        PATH=str(go.parent),
        QUARTERDECK_DOWNLOAD="off",
        PIP_INDEX_URL=closed,
        PIP_CONFIG_FILE=os.devnull,
        PIP_FIND_LINKS="",
        PIP_RETRIES="0",
    )
    assert line.startswith("no Go 1.26 or newer on PATH and no network to get one (")


@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go on PATH")
def test_go_without_a_module_proxy(tmp_path: Path, closed: str) -> None:
    line = get(tmp_path, "etcd", QUARTERDECK_DOWNLOAD="off", GOPROXY=closed, GOFLAGS="-mod=mod")
    assert line.startswith("building etcd failed, because the Go module proxy cannot be reached (")
    assert line.endswith(
        "set GOPROXY to one that can, or set KUBEBUILDER_ASSETS to a directory "
        "that has the programs"
    )


def test_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    line = get(tmp_path / "file", "etcd")
    assert line == (
        f"cannot write to the cache {tmp_path}/file/quarterdeck/v1.36.4: Not a directory; "
        "set QUARTERDECK_CACHE to a directory that you can write to"
    )


def test_cache_on_a_read_only_disk(tmp_path: Path) -> None:
    cache = tmp_path / "small"
    line = get(cache, "etcd", before=small_disk(cache, "1m,ro"))
    assert line.startswith(f"cannot write to the cache {cache}/quarterdeck/v1.36.4: Read-only file")
