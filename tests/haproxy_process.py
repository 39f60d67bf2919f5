"""A real HAProxy for tests, with its sockets in a directory of the test."""

import contextlib
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from quarterdeck.testing.waiting import eventually


@contextlib.contextmanager
def running_haproxy(config: str, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """HAProxy with this configuration, in the foreground; it has begun to listen."""
    file = directory / "haproxy.cfg"
    admin = directory / "admin.sock"
    admin.unlink(missing_ok=True)
    file.write_text(f"global\n    stats socket {admin} level admin\n{config}", encoding="utf-8")
    process = subprocess.Popen(["haproxy", "-db", "-f", str(file)], stderr=subprocess.DEVNULL)
    try:
        # It answers only after it has begun to listen everywhere.
        eventually(lambda: answers(admin) or process.poll() is not None, "HAProxy answers")
        assert process.poll() is None, "HAProxy ended"
        yield process
    finally:
        process.terminate()
        process.wait()


def answers(admin: Path) -> bool:
    """Whether HAProxy answers on its runtime socket."""
    try:
        return bool(request(admin, "show info\n"))
    except OSError:
        return False


def request(path: Path, head: str = "GET / HTTP/1.0\r\n\r\n") -> bytes:
    """The answer to a request on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(path))
        client.sendall(head.encode())
        received = b""
        while chunk := client.recv(65536):
            received += chunk
        return received


@contextlib.contextmanager
def datagram_socket(path: Path) -> Iterator[socket.socket]:
    """A Unix datagram socket that receives what HAProxy logs there."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(30)
        receiver.bind(str(path))
        yield receiver
