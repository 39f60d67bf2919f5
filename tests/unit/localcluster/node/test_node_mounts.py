"""The mounts of a container, planned on a host that is only a dictionary."""

from pathlib import PurePosixPath as Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.localcluster.node.sandbox.mounts import (
    Bind,
    Dev,
    Directory,
    FileKind,
    Mount,
    NoMountPointError,
    Proc,
    ReadOnly,
    Symlink,
    Tmpfs,
    View,
    plan_mounts,
    resolve,
)

BASE = ["/tmp", "/run", "/var/tmp", "/etc/ssl", "/usr/bin", "/proc", "/dev", "/home/u/.kube"]
FILES = ["/etc/passwd", "/home/u/secret"]


class FakeHost:
    """Directories, files and links by path."""

    def __init__(self, directories: list[str], files: list[str], links: dict[str, str]) -> None:
        self.tree: dict[Path, FileKind] = {Path("/"): FileKind.DIRECTORY}
        self.links = {Path(path): to for path, to in links.items()}
        for directory in directories:
            self.add(Path(directory), FileKind.DIRECTORY)
        for file in files:
            self.add(Path(file), FileKind.FILE)
        for link in self.links:
            self.add(link, FileKind.LINK)

    def add(self, path: Path, kind: FileKind) -> None:
        for parent in path.parents:
            self.tree[parent] = FileKind.DIRECTORY
        self.tree[path] = kind

    def kind(self, path: Path) -> FileKind:
        return self.tree.get(path, FileKind.NOTHING)

    def entries(self, path: Path) -> list[str]:
        return [each.name for each in self.tree if each.parent == path and each != path]

    def link(self, path: Path) -> str:
        return self.links[path]


HOST = FakeHost(BASE, FILES, {"/var/run": "/run", "/bin": "usr/bin", "/loop": "loop"})


def volume(target: str, *, directory: bool = True, read_only: bool = False) -> Bind:
    return Bind(
        source=f"/state{target}", target=Path(target), directory=directory, read_only=read_only
    )


def mounts(*volumes: Bind, **view: object) -> list[Mount]:
    return plan_mounts(View(volumes=volumes, **view), HOST)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "resolved"),
    [
        ("/var/run/secrets", "/run/secrets"),
        ("/bin/sh", "/usr/bin/sh"),
        ("/etc/../etc/x", "/etc/x"),
        ("/new/place", "/new/place"),
    ],
)
def test_resolution(path: str, resolved: str) -> None:
    assert resolve(Path(path), HOST) == Path(resolved)


def test_a_loop_of_links_is_refused() -> None:
    with pytest.raises(NoMountPointError, match="too many symbolic links"):
        resolve(Path("/loop/x"), HOST)


def test_nothing_special_gives_a_read_only_root_and_scratch() -> None:
    assert mounts() == [
        Bind(source="/", target=Path("/")),
        Proc(),
        Dev(),
        Tmpfs(Path("/run")),
        Tmpfs(Path("/tmp")),
        Tmpfs(Path("/var/tmp")),
    ]


def test_a_read_only_root_seals_the_scratch_directories_after_all_mounts() -> None:
    planned = mounts(volume("/var/run/secrets"), read_only_root=True)
    assert planned[-3:] == [
        ReadOnly(Path("/var/tmp")),
        ReadOnly(Path("/tmp")),
        ReadOnly(Path("/run")),
    ]
    assert volume("/var/run/secrets").source in [m.source for m in planned if isinstance(m, Bind)]


def test_a_missing_mount_point_opens_its_nearest_parent() -> None:
    """/etc becomes a tmpfs with the host's entries bound back, sealed in the end."""
    planned = mounts(volume("/etc/app/conf"))
    at = planned.index(Tmpfs(Path("/etc")))
    assert planned[at + 1 : at + 3] == [
        Bind(source="/etc/passwd", target=Path("/etc/passwd"), directory=False),
        Bind(source="/etc/ssl", target=Path("/etc/ssl")),
    ]
    assert planned[-1] == ReadOnly(Path("/etc"))
    assert planned.index(volume("/etc/app/conf")) > at


def test_a_missing_mount_point_in_the_root_opens_the_root() -> None:
    """The root's entries are bound one by one, links as links, /proc and /dev left out."""
    planned = mounts(volume("/payload"))
    assert Bind(source="/", target=Path("/")) not in planned
    assert Bind(source="/usr", target=Path("/usr")) in planned
    assert Symlink("usr/bin", Path("/bin")) in planned
    assert Bind(source="/proc", target=Path("/proc")) not in planned
    assert planned[-1] == ReadOnly(Path("/"))


def test_a_file_where_a_directory_is_on_the_host_is_possible() -> None:
    planned = mounts(volume("/etc/ssl", directory=False))
    assert Tmpfs(Path("/etc")) in planned
    assert Bind(source="/etc/ssl", target=Path("/etc/ssl")) not in planned


def test_masks() -> None:
    """A directory is masked by an empty one, a file by /dev/null, nothing by nothing."""
    planned = mounts(masked=[Path("/home/u/.kube"), Path("/home/u/secret"), Path("/nope")])
    assert Tmpfs(Path("/home/u/.kube")) in planned
    assert ReadOnly(Path("/home/u/.kube")) in planned
    assert Bind(source="/dev/null", target=Path("/home/u/secret"), directory=False) in planned


def test_an_installation_in_a_scratch_directory_is_bound_back() -> None:
    """And what must be hidden inside it stays hidden."""
    host = FakeHost([*BASE, "/tmp/clone/.venv", "/tmp/clone/state", "/tmp/other"], FILES, {})
    view = View(kept=[Path("/tmp/clone")], masked=[Path("/tmp/clone/state"), Path("/tmp/other")])
    planned = plan_mounts(view, host)
    kept = planned.index(Bind(source="/tmp/clone", target=Path("/tmp/clone")))
    assert planned.index(Tmpfs(Path("/tmp"))) < kept
    assert planned.index(Tmpfs(Path("/tmp/clone/state"))) > kept
    assert Tmpfs(Path("/tmp/other")) not in planned


def test_a_file_in_a_scratch_directory_can_be_kept() -> None:
    """As /etc/resolv.conf, which is often a link into /run."""
    host = FakeHost([*BASE, "/run/resolve"], ["/run/resolve/resolv.conf"], {})
    kept = Path("/run/resolve/resolv.conf")
    planned = plan_mounts(View(kept=[kept]), host)
    assert planned[-1] != Tmpfs(Path("/run"))
    assert Bind(source=str(kept), target=kept, directory=False) in planned


def test_a_volume_inside_a_read_only_one_gets_its_mount_point() -> None:
    """The outer one is sealed only when the inner one is there."""
    planned = mounts(volume("/etc/ssl", read_only=True), volume("/etc/ssl/own", read_only=True))
    assert volume("/etc/ssl", read_only=False) in planned
    assert planned[-1] == ReadOnly(Path("/etc/ssl"))


def test_nothing_can_be_mounted_inside_a_mounted_file() -> None:
    with pytest.raises(NoMountPointError, match="is a file"):
        mounts(volume("/data", directory=False), volume("/data/x"))


NAMES = st.sampled_from(["etc", "ssl", "new", "usr", "tmp", "run", "passwd", "home", "u", ".kube"])
TARGETS = st.lists(NAMES, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


def inside(path: Path, directory: Path) -> bool:
    return path == directory or directory in path.parents


def cover_of(path: Path, made: list[Mount]) -> Mount:
    """The mount that shows the path: the latest one that it lies in."""
    return next(mount for mount in reversed(made) if inside(path, mount.target))


@given(st.lists(TARGETS, max_size=5, unique=True), st.booleans())
def test_every_mount_point_can_be_made_and_every_volume_is_seen(
    targets: list[str], read_only_root: bool
) -> None:
    """Whatever the mount paths: no mount needs a directory that cannot be there."""
    view = View(
        volumes=[volume(target) for target in targets],
        masked=[Path("/home/u/.kube")],
        read_only_root=read_only_root,
    )
    planned = plan_mounts(view, HOST)
    made: list[Mount] = [Tmpfs(Path("/"))]
    for mount in planned:
        if isinstance(mount, ReadOnly):
            continue
        cover = cover_of(mount.target, made)
        if isinstance(mount, Directory):
            assert isinstance(cover, Tmpfs)
            continue
        if isinstance(cover, Bind) and cover.read_only:
            on_host = Path(cover.source) / mount.target.relative_to(cover.target)
            assert HOST.kind(on_host) in (FileKind.DIRECTORY, FileKind.FILE), mount
        made = [old for old in made if not inside(old.target, mount.target)] + [mount]
    sealed = [mount for mount in planned if isinstance(mount, ReadOnly)]
    assert planned[len(planned) - len(sealed) :] == sealed
    for target in targets:
        seen = cover_of(resolve(Path(target), HOST), made)
        assert isinstance(seen, Bind)
        assert (
            seen.source == f"/state{target}"
            or targets.count(target) != 1
            or _shared(target, targets)
        )
    kube = cover_of(Path("/home/u/.kube/config"), made)
    assert not (isinstance(kube, Bind) and kube.read_only)


def _shared(target: str, targets: list[str]) -> bool:
    """Whether another volume has the same place under another name."""
    place = resolve(Path(target), HOST)
    return any(other != target and resolve(Path(other), HOST) == place for other in targets)
