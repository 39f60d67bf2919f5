"""`quarterdeck local up --real-nodes` where it cannot be; file system and relay of a real node."""

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.places import ROOT as CLONE

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


FILE_SYSTEM = """
import json, sys
from pathlib import Path
from quarterdeck.localcluster.real_nodes import libc
from quarterdeck.localcluster.real_nodes.configuration import sysctl_files
from quarterdeck.localcluster.real_nodes.first_process import make_file_system

scratch = Path(sys.argv[1])
libc.unshare(libc.CLONE_NEWNS)
libc.mount("", "/", flags=libc.MS_REC | libc.MS_PRIVATE)
mounted = scratch / "a disk"
mounted.mkdir()
libc.mount("tmpfs", mounted, "tmpfs", libc.MS_NOSUID)
for name in ("etc", "var", "sysctl"):
    (scratch / "node" / name).mkdir(parents=True)
for name, value in sysctl_files().items():
    (scratch / "node" / "sysctl" / name.replace("/", ".")).write_text(value)
make_file_system(scratch / "node")
found = {}
for path in (scratch, mounted, Path("/usr"), Path("/var"), Path("/run")):
    try:
        (path / "written").touch()
        found[path.name] = "written"
    except OSError as error:
        found[path.name] = error.strerror
(line,) = (line for line in Path("/proc/self/mountinfo").read_text().splitlines() if "disk" in line)
found["options"] = line.split()[5]
print(json.dumps(found))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes real nodes")
def test_a_node_writes_to_its_own_files_and_only_reads_the_machines() -> None:
    """Also where the machine has mounted something, as a home directory on another disk."""
    # Not below /var or /run, which the node has itself.
    with tempfile.TemporaryDirectory(dir=CLONE) as scratch:
        done = subprocess.run(
            [sys.executable, "-c", FILE_SYSTEM, scratch],
            capture_output=True,
            text=True,
            check=False,
        )
        if "unshare: " in done.stderr:
            pytest.skip("no mount namespaces may be made here")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        read_only = "Read-only file system"
        assert found.pop(Path(scratch).name) == read_only
        assert found.pop("options").split(",")[:2] == ["ro", "nosuid"]
        assert found == {"a disk": read_only, "usr": read_only, "var": "written", "run": "written"}
        assert (Path(scratch) / "node" / "var" / "written").exists()
