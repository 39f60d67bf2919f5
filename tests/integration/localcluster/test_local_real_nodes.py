"""`quarterdeck local up --real-nodes` where it cannot be: one line, and exit code 2; the relay."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quarterdeck.testing.waiting import eventually

LOOPBACK = "127.0.0.1"


def refused(tmp_path: Path, *options: str, as_root: bool) -> str:
    """The only line that the command says, as root of this machine or as somebody else."""
    # In a user namespace without a mapping, root is nobody in particular.
    somebody = ["unshare", "--user"] if not as_root and os.geteuid() == 0 else []
    done = subprocess.run(
        [*somebody, sys.executable, "-m", "quarterdeck", "local", "up", "--real-nodes", *options],
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    assert not list(tmp_path.iterdir())
    return line


def test_who_is_not_root_is_told_so(tmp_path: Path) -> None:
    assert "real nodes need root" in refused(tmp_path, "2", as_root=False)


def test_options_that_install_something_are_refused(tmp_path: Path) -> None:
    for option in ("--payload", "--all", "--sample"):
        assert "the cluster is empty" in refused(tmp_path, "2", option, as_root=True)


@contextmanager
def relay(target: int) -> Iterator[tuple[int, Path]]:
    """The port of a relay to the target, and the directory of its descriptors."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        module = "quarterdeck.localcluster.real_nodes.relay"
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, f"{listener.fileno()}:{LOOPBACK}:{target}"],
            pass_fds=[listener.fileno()],
        )
        try:
            yield listener.getsockname()[1], Path(f"/proc/{process.pid}/fd")
        finally:
            process.kill()
            process.wait()


def connected(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK, port), timeout=60)


def test_the_relay_hands_on_both_directions_and_the_end_of_each() -> None:
    """A client that comes before the server, and clients that break off, leave nothing open."""
    with socket.create_server((LOOPBACK, 0)) as there:
        target = there.getsockname()[1]
    with relay(target) as (port, open_files):
        with connected(port) as early:
            assert early.recv(1) == b"", "nobody listens there yet"
        before = len(list(open_files.iterdir()))
        with socket.create_server((LOOPBACK, target)) as server:
            for _ in range(20):
                with connected(port) as broken:
                    broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    server.accept()[0].close()
            with connected(port) as client, server.accept()[0] as answering:
                client.sendall(b"question")
                client.shutdown(socket.SHUT_WR)
                assert answering.makefile("rb").read() == b"question"
                answering.sendall(b"x" * 1_000_000)
                answering.shutdown(socket.SHUT_WR)
                assert len(client.makefile("rb").read()) == 1_000_000
        eventually(lambda: len(list(open_files.iterdir())) <= before, "all are closed")
