"""The state directory: who may use it, and when it is refused."""

import os
import shlex
from pathlib import Path

import msgspec
import pytest

from quarterdeck.cli.cluster import LocalCluster
from quarterdeck.localcluster.background import purge
from quarterdeck.localcluster.errors import AlreadyRunning, StateUnusable
from quarterdeck.localcluster.state import (
    THIS_VERSION,
    Layout,
    Lock,
    StateVersion,
    is_locked,
    prepare,
    selecting_options,
)
from quarterdeck.private_file import write_private


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "state")


def test_a_new_directory_is_private_and_remembers_its_version(layout: Layout) -> None:
    prepare(layout)
    assert layout.root.stat().st_mode & 0o777 == 0o700
    assert msgspec.json.decode(layout.version.read_bytes(), type=StateVersion) == THIS_VERSION


def test_a_directory_that_others_could_read_is_closed(layout: Layout) -> None:
    layout.root.mkdir(mode=0o755)
    prepare(layout)
    assert layout.root.stat().st_mode & 0o777 == 0o700


def test_preparing_again_changes_nothing(layout: Layout) -> None:
    prepare(layout)
    before = layout.version.stat()
    prepare(layout)
    assert layout.version.stat() == before


def test_a_link_to_another_disk_is_purged_with_what_it_names(layout: Layout) -> None:
    elsewhere = layout.root.with_name("elsewhere")
    elsewhere.mkdir()
    layout.root.symlink_to(elsewhere)
    prepare(layout)
    (elsewhere / "link").symlink_to(layout.root.parent)
    purge(layout)
    assert not list(layout.root.parent.iterdir())
    assert layout.root.parent.is_dir()


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(b'{"format": 1, "kubernetes": "1.35.0"}', id="another Kubernetes"),
        pytest.param(b'{"format": 99, "kubernetes": "1.36.4"}', id="another format"),
        pytest.param(b"", id="an empty version file"),
        pytest.param(b"[]", id="a version file with something else in it"),
    ],
)
def test_another_version_is_refused_with_the_remedy(layout: Layout, version: bytes) -> None:
    prepare(layout)
    write_private(layout.version, version)
    with pytest.raises(StateUnusable, match="quarterdeck local down --purge"):
        prepare(layout)


def test_data_without_a_version_is_refused(layout: Layout) -> None:
    layout.etcd_data.mkdir(parents=True)
    with pytest.raises(StateUnusable, match=r"has a cluster in it but no version\.json"):
        prepare(layout)


def test_a_file_in_the_way_is_named(layout: Layout) -> None:
    layout.root.write_text("")
    with pytest.raises(StateUnusable, match=f"cannot use {layout.root}"):
        prepare(layout)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_another_users_directory_is_refused(layout: Layout) -> None:
    layout.root.mkdir()
    os.chown(layout.root, 12345, 12345)
    with pytest.raises(StateUnusable, match="belongs to user id 12345, you are 0"):
        prepare(layout)


def test_only_one_holds_the_lock(layout: Layout) -> None:
    """The second is refused, until the first lets go."""
    prepare(layout)
    assert not is_locked(layout)
    first = Lock(layout)
    assert is_locked(layout)
    with pytest.raises(AlreadyRunning, match="runs already"):
        Lock(layout)
    first.release()
    assert not is_locked(layout)
    Lock(layout).release()


def test_a_directory_that_is_not_there_is_not_locked(layout: Layout) -> None:
    assert not is_locked(layout)


def test_a_private_file_is_replaced_whole_and_never_readable(tmp_path: Path) -> None:
    target = tmp_path / "secret"
    target.write_text("old")
    target.chmod(0o644)
    write_private(target, b"new")
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [target]


def test_what_lies_where_a_private_file_is_written_is_not_followed_nor_used(tmp_path: Path) -> None:
    """A link would carry the key elsewhere, and a file of others keep its rights."""
    elsewhere, target = tmp_path / "elsewhere", tmp_path / "secret"
    elsewhere.write_text("old")
    beside = tmp_path / f".secret.{os.getpid()}"
    beside.symlink_to(elsewhere)
    write_private(target, b"new")
    beside.write_text("left")
    beside.chmod(0o644)
    write_private(target, b"newer")
    assert (elsewhere.read_text(), target.read_text()) == ("old", "newer")
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_private_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (target := tmp_path / "secret").mkdir()
    with pytest.raises(IsADirectoryError):
        write_private(target, b"key")
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(
    ("user", "file"),
    [
        pytest.param("kwok", "kwok.kubeconfig", id="a component"),
        pytest.param(
            "system:serviceaccount:a:b", "system_serviceaccount_a_b.kubeconfig", id="an account"
        ),
        pytest.param("../../etc/x", ".._.._etc_x.kubeconfig", id="no way out of the directory"),
    ],
)
def test_kubeconfigs_of_users_stay_in_their_directory(user: str, file: str) -> None:
    layout = Layout(Path("/state"))
    assert layout.kubeconfig_of(user) == layout.kubeconfigs / file


@pytest.mark.parametrize("name", ["local", "dev"])
@pytest.mark.parametrize("directory", [None, Path("/some where/else")])
def test_the_options_that_select_a_cluster_are_those_of_the_commands(
    monkeypatch: pytest.MonkeyPatch, name: str, directory: Path | None
) -> None:
    """A message of the node leads to the cluster that it is about, whatever its name or place."""
    monkeypatch.setenv("XDG_STATE_HOME", "/home/somebody/.local/state")
    cluster = LocalCluster(name, directory)
    if directory is not None:
        cluster = msgspec.structs.replace(cluster, name="local")
    wanted = cluster.words("exec")[3:]
    for env in ({"HOME": "/home/somebody"}, {"XDG_STATE_HOME": "/home/somebody/.local/state"}):
        assert shlex.split(selecting_options(cluster.state, env)) == wanted
