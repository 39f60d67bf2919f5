"""What volumes hold, and how their files change on disk."""

import base64
import os
import stat
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.pod.environment import UnresolvedError, VariableSources
from quarterdeck.localcluster.node.volumes.contents import (
    File,
    References,
    Token,
    files_of,
    references,
)
from quarterdeck.localcluster.node.volumes.files import (
    Owner,
    binds_of,
    make_empty_directory,
    owner_of,
    remove_tree,
    write_files,
)
from quarterdeck.localcluster.node.volumes.opened import NOTHING_HIDDEN, Hidden

POD: Object = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "main"}]},
}
SOURCES = VariableSources(
    pod=POD,
    config_maps={"cm": {"data": {"a": "1", "b": "2"}, "binaryData": {"c": "AAE="}}},
    secrets={"s": {"data": {"pw": base64.b64encode(b"secret").decode()}}},
)
TOKENS = {Token("", 3607): "the-token"}


def read(volume: dict[str, Any]) -> dict[str, tuple[bytes, str]]:
    files = files_of({"name": "v", **volume}, SOURCES, TOKENS)
    return {path: (file.data, oct(file.mode)) for path, file in files.items()}


@pytest.mark.parametrize(
    ("volume", "files"),
    [
        pytest.param(
            {"configMap": {"name": "cm"}},
            {"a": (b"1", "0o644"), "b": (b"2", "0o644"), "c": (b"\0\1", "0o644")},
            id="a ConfigMap is all its entries",
        ),
        pytest.param(
            {"configMap": {"name": "cm", "items": [{"key": "a", "path": "x/y", "mode": 0o400}]}},
            {"x/y": (b"1", "0o400")},
            id="items choose, rename and set modes",
        ),
        pytest.param(
            {"secret": {"secretName": "s", "defaultMode": 0o644}},
            {"pw": (b"secret", "0o640")},
            id="a Secret is not for the world, whatever the mode asked for",
        ),
        pytest.param(
            {"secret": {"secretName": "no", "optional": True}}, {}, id="an optional one is empty"
        ),
        pytest.param(
            {
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                        {"configMap": {"name": "cm", "items": [{"key": "a", "path": "ca.crt"}]}},
                        {
                            "downwardAPI": {
                                "items": [
                                    {
                                        "path": "labels",
                                        "fieldRef": {"fieldPath": "metadata.labels"},
                                    }
                                ]
                            }
                        },
                    ]
                }
            },
            {
                "token": (b"the-token", "0o640"),
                "ca.crt": (b"1", "0o644"),
                "labels": (b'app="x"', "0o644"),
            },
            id="a projection joins its sources",
        ),
    ],
)
def test_files(volume: dict[str, Any], files: dict[str, tuple[bytes, str]]) -> None:
    assert read(volume) == files


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "no"}}, 'configmap "no" not found'),
        (
            {"secret": {"secretName": "s", "items": [{"key": "x", "path": "x"}]}},
            "add this key to s",
        ),
        ({"persistentVolumeClaim": {"claimName": "c"}}, "this node has only emptyDir, hostPath"),
    ],
)
def test_what_cannot_be_given_says_why(volume: dict[str, Any], message: str) -> None:
    with pytest.raises(UnresolvedError, match=message):
        read(volume)


def test_references_are_found_everywhere() -> None:
    pod: Object = {
        "spec": {
            "volumes": [
                {"name": "a", "configMap": {"name": "c1"}},
                {"name": "b", "secret": {"secretName": "s1"}},
                {
                    "name": "c",
                    "projected": {
                        "sources": [
                            {"secret": {"name": "s2"}},
                            {"serviceAccountToken": {"path": "t"}},
                        ]
                    },
                },
            ],
            "initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "c2"}}]}],
            "containers": [
                {
                    "name": "m",
                    "env": [
                        {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s3", "key": "k"}}}
                    ],
                }
            ],
        }
    }
    assert references(pod) == References(
        config_maps=frozenset({"c1", "c2"}),
        secrets=frozenset({"s1", "s2", "s3"}),
        tokens=frozenset({Token("", 3600)}),
    )


def test_files_are_swapped_in_one_step(tmp_path: Path) -> None:
    """An open directory of the old generation stays whole; names lead to the new one."""
    volume = tmp_path / "v"
    assert write_files(volume, {"a": File(b"1", 0o644), "d/b": File(b"2", 0o600)}, Owner())
    first = (volume / "..data").readlink()
    assert (volume / "a").readlink() == Path("..data/a")
    assert (volume / "d" / "b").read_bytes() == b"2"
    assert write_files(volume, {"a": File(b"3", 0o644)}, Owner())
    assert (volume / "..data").readlink() != first
    assert (volume / "a").read_bytes() == b"3"
    assert sorted(path.name for path in volume.iterdir() if not path.name.startswith("..")) == ["a"]
    assert not (volume / first).exists()


def test_the_same_files_are_not_written_again(tmp_path: Path) -> None:
    files = {"a": File(b"1", 0o644)}
    write_files(tmp_path, files, Owner())
    before = (tmp_path / "..data").readlink()
    assert not write_files(tmp_path, files, Owner())
    assert (tmp_path / "..data").readlink() == before


def test_a_private_volume_is_closed_to_the_world(tmp_path: Path) -> None:
    """No file and no directory of it can be read by others."""
    write_files(tmp_path / "v", {"x/pw": File(b"s", 0o640)}, Owner())
    for path in [tmp_path / "v", *(tmp_path / "v").rglob("*")]:
        if not path.is_symlink():
            assert not path.stat().st_mode & stat.S_IRWXO, path


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["a", "b", "d/a", "d/b"]),
            st.builds(File, st.binary(max_size=3), st.sampled_from([0o600, 0o644])),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_history_ends_at_the_last_files(
    tmp_path_factory: pytest.TempPathFactory, history: list[dict[str, File]]
) -> None:
    volume = tmp_path_factory.mktemp("v")
    for files in history:
        write_files(volume, files, Owner())
    names = [path for path in volume.iterdir() if not path.name.startswith("..")]
    assert {path.name for path in names} == {name.split("/")[0] for name in history[-1]}
    for name, file in history[-1].items():
        assert (volume / name).read_bytes() == file.data
        assert (volume / name).stat().st_mode & 0o777 == file.mode


def test_a_tree_whose_directories_are_closed_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """Links lead out of it; what they lead to stays as it is."""
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    tree = tmp_path / "tree"
    (tree / "closed" / "inner").mkdir(parents=True)
    (tree / "closed" / "inner" / "file").write_text("x")
    (tree / "link").symlink_to(outside)
    (tree / "closed" / "inner").chmod(0)
    (tree / "closed").chmod(0)
    remove_tree(tree)
    assert not tree.exists()
    assert outside.stat().st_mode & 0o777 == 0o755


def test_a_tree_that_is_deeper_than_any_path_is_removed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    here = os.open(tree, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("a", dir_fd=here)
        below = os.open("a", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(tree)
    assert not tree.exists()


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/out", "."])
def test_a_file_stays_in_its_volume(tmp_path: Path, path: str) -> None:
    """The API server refuses such paths; a static pod may have them."""
    with pytest.raises(UnresolvedError, match="stays inside"):
        write_files(tmp_path / "volume", {path: File(b"x", 0o644)}, Owner())
    assert [entry.name for entry in tmp_path.iterdir()] == ["volume"]


def test_files_that_cannot_be_written_leave_nothing_behind(tmp_path: Path) -> None:
    """They are tried again every few seconds."""
    files = {"a": File(b"large", 0o644), "a/b": File(b"", 0o644)}
    for _ in range(3):
        with pytest.raises(OSError, match="a"):
            write_files(tmp_path, files, Owner())
    assert not list(tmp_path.iterdir())


def bind(
    volume: dict[str, Any], mount: dict[str, Any], root: Path, hidden: Hidden = NOTHING_HIDDEN
) -> Any:
    pod = {"spec": {"volumes": [{"name": "v", **volume}], "containers": []}}
    container = {"volumeMounts": [{"name": "v", "mountPath": "/m", **mount}]}
    return binds_of(container, pod, root, {"NAME": "n"}, hidden)[0]


def test_sub_paths(tmp_path: Path) -> None:
    """ScratchEntry in an emptyDir, found in a ConfigMap, and never outside the volume."""
    make_empty_directory(tmp_path / "v", Owner())
    made = bind({"emptyDir": {}}, {"subPathExpr": "$(NAME)/x"}, tmp_path)
    assert made.source == str(tmp_path / "v/n/x")
    assert not made.read_only
    with pytest.raises(UnresolvedError, match="stays inside"):
        bind({"emptyDir": {}}, {"subPath": "../x"}, tmp_path)
    (tmp_path / "v/out").symlink_to("/etc")
    with pytest.raises(UnresolvedError, match="stays inside"):
        bind({"emptyDir": {}}, {"subPath": "out/made-by-a-link"}, tmp_path)


def test_a_file_of_a_config_map_is_bound_read_only(tmp_path: Path) -> None:
    write_files(tmp_path / "v", {"a": File(b"1", 0o644)}, Owner())
    file = bind({"configMap": {"name": "cm"}}, {"subPath": "a"}, tmp_path)
    assert Path(file.source).read_bytes() == b"1"
    assert (file.read_only, file.directory) == (True, False)
    with pytest.raises(UnresolvedError, match="no such path"):
        bind({"configMap": {"name": "cm"}}, {"subPath": "zzz"}, tmp_path)


def test_host_paths_are_made_or_checked(tmp_path: Path) -> None:
    path = str(tmp_path / "new")
    with pytest.raises(UnresolvedError, match="no Directory on this machine"):
        bind({"hostPath": {"path": path, "type": "Directory"}}, {}, tmp_path)
    made = bind({"hostPath": {"path": path, "type": "DirectoryOrCreate"}}, {}, tmp_path)
    assert Path(made.source).is_dir()


def test_links_in_a_volume_are_followed_as_long_as_they_stay_in_it(tmp_path: Path) -> None:
    make_empty_directory(tmp_path / "v", Owner())
    (tmp_path / "v/a/b").mkdir(parents=True)
    (tmp_path / "v/a/up").symlink_to("../a/b")
    (tmp_path / "v/loop").symlink_to("loop")
    (tmp_path / "v/absolute").symlink_to(tmp_path / "v/a")
    (tmp_path / "v/far").symlink_to("../../..")
    assert bind({"emptyDir": {}}, {"subPath": "a/up/new"}, tmp_path).source == str(
        tmp_path / "v/a/b/new"
    )
    for leads_out in ("loop", "absolute", "far/x", "a/../../x"):
        with pytest.raises(UnresolvedError, match="stays inside"):
            bind({"emptyDir": {}}, {"subPath": leads_out}, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v"]


@pytest.mark.parametrize(
    ("path", "fine"),
    [
        pytest.param("state", False, id="what is hidden"),
        pytest.param("state/ca", False, id="inside of it"),
        pytest.param("state/ca/key", False, id="a file of it"),
        pytest.param("", False, id="above it"),
        pytest.param("link/ca", False, id="through a link"),
        pytest.param("config", False, id="a file that is hidden"),
        pytest.param("state/releases/1", True, id="what is shown of it"),
        pytest.param("beside", True, id="beside it"),
    ],
)
def test_host_paths_never_show_what_is_hidden(tmp_path: Path, path: str, fine: bool) -> None:
    for directory in ("state/ca", "state/releases/1", "beside"):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "state/ca/key").touch()
    (tmp_path / "config").touch()
    (tmp_path / "link").symlink_to("state")
    hidden = Hidden(
        [PurePosixPath(tmp_path / "state"), PurePosixPath(tmp_path / "config")],
        [PurePosixPath(tmp_path / "state/releases")],
    )
    volume = {"hostPath": {"path": str(tmp_path / path)}}
    if fine:
        assert bind(volume, {}, tmp_path, hidden).source == str(tmp_path / path)
        return
    with pytest.raises(UnresolvedError, match="name another directory"):
        bind(volume, {}, tmp_path, hidden)


def test_a_pod_only_reads_the_releases_and_writes_to_its_own_credentials(tmp_path: Path) -> None:
    """Who changes a release has the cluster version operator apply anything."""
    state, releases, own = (tmp_path / name for name in ("state", "state/releases", "state/own"))
    for directory in (releases, own):
        directory.mkdir(parents=True)
    hidden = Hidden(*([PurePosixPath(one)] for one in (state, releases, own)))
    volume: dict[str, Any] = {"hostPath": {"path": str(releases)}}
    assert bind(volume, {"readOnly": False}, tmp_path, hidden).read_only
    with pytest.raises(UnresolvedError, match="no such path"):
        bind(volume, {"subPath": "new"}, tmp_path, hidden)
    made = {"hostPath": {"path": f"{releases}/new", "type": "DirectoryOrCreate"}}
    with pytest.raises(UnresolvedError, match="name another directory"):
        bind(made, {}, tmp_path, hidden)
    assert not list(releases.iterdir())
    assert not bind({"hostPath": {"path": str(own)}}, {}, tmp_path, hidden).read_only


def test_nothing_is_made_in_what_is_hidden(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    volume = {"hostPath": {"path": f"{tmp_path}/state/a/b", "type": "DirectoryOrCreate"}}
    with pytest.raises(UnresolvedError, match="name another directory"):
        bind(volume, {}, tmp_path, Hidden([PurePosixPath(tmp_path / "state")], []))
    assert not list((tmp_path / "state").iterdir())


@pytest.mark.parametrize(
    ("spec", "owner"),
    [
        pytest.param({"containers": [{}]}, Owner(), id="nobody in particular"),
        pytest.param(
            {"containers": [{}], "securityContext": {"runAsUser": 5, "fsGroup": 6}},
            Owner(5, 6),
            id="the pod's user and group",
        ),
        pytest.param(
            {"containers": [{"securityContext": {"runAsUser": 5}}, {}]},
            Owner(),
            id="containers that differ: nobody in particular",
        ),
    ],
)
def test_owner(spec: dict[str, Any], owner: Owner) -> None:
    assert owner_of({"spec": spec}, root=True) == owner
    assert owner_of({"spec": spec}, root=False) == Owner()


def test_a_host_path_shows_no_processes(tmp_path: Path) -> None:
    for path in ("/proc", "/proc/self", "proc/1"):
        with pytest.raises(UnresolvedError, match="no processes but its own"):
            bind({"hostPath": {"path": path}}, {}, tmp_path)


def test_a_sub_path_is_made_with_the_mode_of_its_volume(tmp_path: Path) -> None:
    """Else only we could write there, and not the pod's user."""
    make_empty_directory(tmp_path / "v", Owner())
    bind({"emptyDir": {}}, {"subPath": "a/b"}, tmp_path)
    assert [(tmp_path / "v" / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o777] * 2
