"""A real rsyslog for tests, with the sidecar's configuration in a directory of the test."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quarterdeck.haproxy.sidecar import rsyslog_conf
from quarterdeck.testing.waiting import eventually


class Sidecar(msgspec.Struct):
    """The running rsyslog and the file that gets its standard output."""

    process: subprocess.Popen[bytes]
    output: Path

    def lines(self) -> list[str]:
        """The lines of its log."""
        return self.output.read_text(encoding="utf-8", errors="surrogateescape").splitlines()


@contextlib.contextmanager
def running_sidecar(directory: Path) -> Iterator[Sidecar]:
    """rsyslog as the sidecar runs it; it has begun to listen."""
    file = directory / "rsyslog.conf"
    file.write_text(rsyslog_conf(directory=str(directory)), encoding="utf-8")
    output = directory / "sidecar.log"
    (directory / "stream.sock").unlink(missing_ok=True)
    with output.open("ab") as out:
        process = subprocess.Popen(
            ["rsyslogd", "-n", "-iNONE", "-f", str(file)], stdout=out, stderr=out
        )
    try:
        eventually((directory / "stream.sock").exists, "rsyslog listens")
        eventually((directory / "rsyslog.sock").exists, "rsyslog listens")
        yield Sidecar(process, output)
    finally:
        process.terminate()
        process.wait()
