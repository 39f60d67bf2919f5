"""A source that is swapped for another while a container is started is never seen inside."""

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest
from tests.integration.localcluster.node.processes import ROOT, Make, maker, run
from tests.integration.pods import NAMESPACES, needs_bubblewrap

from quarterdeck.localcluster.node.pod.environment import UnresolvedError
from quarterdeck.localcluster.node.sandbox.arguments import User
from quarterdeck.localcluster.node.volumes.files import binds_of

pytestmark = needs_bubblewrap
LIBC = ctypes.CDLL(None)
AT_FDCWD, RENAME_EXCHANGE = -100, 2


@pytest.fixture
def make(tmp_path: Path) -> Make:
    logs = tmp_path / "logs"
    logs.mkdir()
    return maker(logs)


@contextmanager
def swapping(volume: Path, secret: Path) -> Iterator[None]:
    """A directory `sub` of a volume is a link out of it every other moment."""
    (volume / "sub").mkdir(parents=True)
    (volume / "link").symlink_to(secret)
    stop = threading.Event()

    def swap() -> None:
        one, other = (os.fsencode(volume / name) for name in ("sub", "link"))
        while not stop.is_set():
            assert LIBC.renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("tries", [10, pytest.param(200, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "user",
    [
        None,
        pytest.param(
            User(1234, 5), marks=pytest.mark.skipif(not ROOT, reason="only root can take it")
        ),
    ],
)
async def test_a_sub_path_that_is_swapped_never_shows_the_outside(
    make: Make, tmp_path: Path, user: User | None, tries: int
) -> None:
    """By chance; the last test of this file does the same for certain."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("the key\n")
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": []}}
    container = {"volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": "sub"}]}
    codes: list[int] = []
    with swapping(tmp_path / "volumes/v", secret):
        while len(codes) < tries:
            try:
                binds = binds_of(container, pod, tmp_path / "volumes", {})
            except UnresolvedError:  # it was the link when it was looked at
                continue
            ended, output = await run(make("ls /m", volumes=binds, user=user))
            codes.append(ended.code)
            assert "key" not in output
            # In proot the source may be replaced later, too: then it may not be read.
            assert ended.code in ((0, 128) if NAMESPACES else (0, 2, 128))


async def test_a_source_that_stays_is_mounted(make: Make, tmp_path: Path) -> None:
    """A directory and a file; the descriptors are closed when the process runs."""
    volume = tmp_path / "volumes/v"
    (volume / "sub").mkdir(parents=True)
    (volume / "sub/file").write_text("content\n")
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": []}}
    mounts = [
        {"name": "v", "mountPath": "/new/m", "subPath": "sub"},
        {"name": "v", "mountPath": "/etc/of-ours", "subPath": "sub/file"},
    ]
    binds = binds_of({"volumeMounts": mounts}, pod, tmp_path / "volumes", {})
    ended, output = await run(make("cat /new/m/file /etc/of-ours", volumes=binds))
    assert (ended.code, output) == (0, "content\n" * 2)
    assert [bind.opened.descriptor for bind in binds if bind.opened] == [-1, -1]


async def test_a_mount_that_is_not_what_was_opened_does_not_start(
    make: Make, tmp_path: Path
) -> None:
    """For certain, not by chance: the source is replaced between the two."""
    volume = tmp_path / "volumes/v"
    (volume / "sub").mkdir(parents=True)
    pod = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": []}}
    container = {"volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": "sub"}]}
    binds = binds_of(container, pod, tmp_path / "volumes", {})
    (volume / "sub").rmdir()
    (volume / "sub").symlink_to("/usr")
    ended, output = await run(make("ls /m", volumes=binds))
    assert ended.code == 128
    assert "/m: its source was replaced" in ended.start_error
    assert output in ("", f"{ended.start_error}\n")
    assert PurePosixPath("/m") == binds[0].target
