"""A real HTTP proxy for tests: Debian's tinyproxy on loopback, with a password."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.registry_process import listens

from quarterdeck.testing.waiting import eventually

PROXY_USER, PROXY_PASSWORD = "operator", "hidden-word"


class RunningProxy:
    """A proxy that runs, and what it was asked."""

    def __init__(self, log: Path) -> None:
        self._log = log

    @property
    def asked(self) -> list[str]:
        """The requests, as `CONNECT host:port` or `GET http://...`."""
        lines = self._log.read_text().splitlines()
        requests = [line.partition("): ")[2] for line in lines if ": Request (" in line]
        return [request.rpartition(" HTTP/")[0] for request in requests]


@contextlib.contextmanager
def running_proxy(
    directory: Path, port: int, *, password: str = PROXY_PASSWORD
) -> Iterator[RunningProxy]:
    """A proxy at a port of loopback, whose log is in the directory; it answers."""
    directory.mkdir(exist_ok=True)
    log = directory / "tinyproxy.log"
    log.unlink(missing_ok=True)
    settings = directory / "tinyproxy.conf"
    settings.write_text(
        f"Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\nMaxClients 20\n"
        f'LogFile "{log}"\nLogLevel Connect\nBasicAuth {PROXY_USER} {password}\n'
    )
    process = subprocess.Popen(
        ["tinyproxy", "-d", "-c", str(settings)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: listens(f"127.0.0.1:{port}") or process.poll() is not None, "the proxy")
        assert process.poll() is None, log.read_text()
        yield RunningProxy(log)
    finally:
        process.terminate()
        process.wait()
