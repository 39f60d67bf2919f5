"""A network namespace of a test: in it, the machine also has addresses that are not loopback ones.

The API refuses loopback addresses in EndpointSlices, so a test of endpoints needs others, and these
must reach nobody else.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

NETWORK = "192.0.2."
"""All addresses that begin with this are the machine itself, in the namespace."""
_ROOT = Path(__file__).parent.parent
_HOLDER = """\
import fcntl, socket, struct, sys
with socket.socket() as it:
    fcntl.ioctl(it, 0x8914, struct.pack("16sH14x", b"lo", 0x41))  # up
    address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton("192.0.2.1"))
    fcntl.ioctl(it, 0x8916, struct.pack("16s16s", b"lo:1", address))
print("ready", flush=True)
sys.stdin.read()
"""


class NetworkNamespace:
    """What runs in the namespace ends with it."""

    def __init__(self, holder: int) -> None:
        user = ["--user", "--preserve-credentials"] if os.geteuid() else []
        self._enter = ["nsenter", f"--target={holder}", *user, "--net", "--"]
        self._started: list[subprocess.Popen[bytes]] = []

    def command(self, *words: str) -> list[str]:
        """The command, inside."""
        return [*self._enter, *words]

    def start(
        self, *words: str, inside: bool = True, says_ready: bool = True
    ) -> subprocess.Popen[bytes]:
        """Start a program; if it says a line when it is ready, wait for that."""
        process = subprocess.Popen(
            self.command(*words) if inside else words, stdout=subprocess.PIPE, cwd=_ROOT
        )
        self._started.append(process)
        assert process.stdout is not None
        if says_ready:
            assert process.stdout.readline() == b"ready\n"
        return process

    def relay(self, *ends: str, inside: bool = True) -> subprocess.Popen[bytes]:
        """Pass connections on, as `tests.relay` does."""
        return self.start(sys.executable, "-m", "tests.relay", *ends, inside=inside)

    def end_all(self) -> None:
        """End what was started."""
        for process in self._started:
            end(process)


def end(process: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> str:
    """Signal a process, wait for it, and return the rest of its output."""
    if process.poll() is None:
        process.send_signal(number)
    rest = (
        process.communicate(timeout=60)[0] if process.stdout and not process.stdout.closed else b""
    )
    process.wait(60)
    return rest.decode()


@contextlib.contextmanager
def network_namespace() -> Iterator[NetworkNamespace]:
    """A new namespace; skips the test where none can be made."""
    user = ["--user", "--map-root-user"] if os.geteuid() else []
    holder = subprocess.Popen(
        ["unshare", *user, "--net", sys.executable, "-c", _HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        if holder.stdout.readline() != b"ready\n":
            pytest.skip("this machine lets us make no network namespace")
        made = NetworkNamespace(holder.pid)
        try:
            yield made
        finally:
            made.end_all()
    finally:
        holder.stdin.close()
        holder.stdout.close()
        holder.wait(60)
