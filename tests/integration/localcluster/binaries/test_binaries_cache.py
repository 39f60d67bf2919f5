"""The cache on a real file system: what is trusted, what is not, and the user's own directory."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quarterdeck.localcluster.binaries import BinariesUnavailable, BinarySettings, ensure_binaries
from quarterdeck.localcluster.binaries.cache import Corrupt, FoundProgram, Missing, ProgramCache
from quarterdeck.localcluster.binaries.catalog import CATALOG

ETCD = CATALOG.program("etcd")
PLATFORM = "linux/amd64"


@pytest.fixture
def cache(tmp_path: Path) -> ProgramCache:
    directory = tmp_path / "quarterdeck" / CATALOG.version
    directory.mkdir(parents=True)
    return ProgramCache(directory, PLATFORM)


def install(cache: ProgramCache, content: bytes = b"#!/bin/sh\necho etcd\n") -> Path:
    staged = cache.directory / "staged"
    staged.write_bytes(content)
    found = cache.install(ETCD, staged, "a test")
    assert not staged.exists()
    return found.path


def test_installed_program_is_found_and_can_be_run(cache: ProgramCache) -> None:
    path = install(cache)
    assert cache.look(ETCD) == FoundProgram(path, "a test")
    assert os.access(path, os.X_OK)


def test_empty_cache_has_nothing(cache: ProgramCache) -> None:
    assert cache.look(ETCD) == Missing()


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)


def flip_and_restore_the_time(path: Path) -> None:
    before = path.stat()
    flip(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def truncate(path: Path) -> None:
    os.truncate(path, 5)


def grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(b"X" * path.stat().st_size)
    other.chmod(0o755)
    other.replace(path)


def forbid(path: Path) -> None:
    path.chmod(0o644)


@pytest.mark.parametrize(
    "damage", [flip, flip_and_restore_the_time, truncate, grow, replace, forbid]
)
@pytest.mark.parametrize("sealed", [False, True], ids=["before", "after"])
def test_damage_is_found_before_and_after_the_file_was_seen_sound(
    cache: ProgramCache, damage: Callable[[Path], None], sealed: bool
) -> None:
    path = install(cache)
    if sealed:
        assert cache.look(ETCD) == FoundProgram(path, "a test")
        assert cache.look(ETCD) == FoundProgram(path, "a test")
    damage(path)
    assert cache.look(ETCD) == Corrupt(path)


def test_sound_file_is_not_read_again(cache: ProgramCache) -> None:
    """The second look costs no hash; a hash would write the seal anew."""
    path = install(cache)
    seal = path.parent / "records" / "etcd.seal"
    cache.look(ETCD)
    first = seal.stat().st_ino, seal.stat().st_mtime_ns
    cache.look(ETCD)
    assert (seal.stat().st_ino, seal.stat().st_mtime_ns) == first


def test_copied_cache_is_hashed_once_more_and_trusted(cache: ProgramCache, tmp_path: Path) -> None:
    install(cache)
    cache.look(ETCD)
    copy = tmp_path / "copy"
    shutil.copytree(cache.directory, copy)
    assert ProgramCache(copy, PLATFORM).look(ETCD) == FoundProgram(copy / "etcd", "a test")


def test_program_of_another_platform_is_missing(cache: ProgramCache) -> None:
    install(cache)
    assert ProgramCache(cache.directory, "linux/arm64").look(ETCD) == Missing()


def test_program_without_a_record_is_missing(cache: ProgramCache) -> None:
    """This is what a crash between the program and its record leaves behind."""
    path = install(cache)
    (path.parent / "records" / "etcd.json").unlink()
    assert cache.look(ETCD) == Missing()


@pytest.mark.parametrize("content", [b"", b"{", b'{"sha256": 1}', b"\xff"])
def test_unreadable_record_counts_as_none(cache: ProgramCache, content: bytes) -> None:
    path = install(cache)
    (path.parent / "records" / "etcd.json").write_bytes(content)
    assert cache.look(ETCD) == Missing()


def settings_for(root: Path, **env: str) -> BinarySettings:
    return BinarySettings.from_environment(
        {
            "HOME": str(root),
            "QUARTERDECK_CACHE": str(root),
            "QUARTERDECK_DOWNLOAD": "off",
            "QUARTERDECK_BUILD": "off",
            **env,
        }
    )


def own_programs(folder: Path, *names: str, content: bytes = b"#!/bin/sh\n") -> Path:
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o755)
    return folder


def test_own_directory_comes_before_the_cache(tmp_path: Path) -> None:
    assets = own_programs(tmp_path / "own", "kube-apiserver", "etcd", "kubectl")
    settings = settings_for(tmp_path, KUBEBUILDER_ASSETS=str(assets))
    binaries = ensure_binaries(settings, ["etcd", "kubectl"])
    assert (binaries.etcd, binaries.kubectl) == (assets / "etcd", assets / "kubectl")
    assert binaries.source == "KUBEBUILDER_ASSETS"
    with pytest.raises(KeyError):
        _ = binaries.kwok


def test_what_the_own_directory_lacks_comes_from_the_cache(
    tmp_path: Path, cache: ProgramCache
) -> None:
    assets = own_programs(tmp_path / "own", "kube-apiserver", "etcd", "kubectl")
    staged = cache.directory / "staged"
    staged.write_bytes(b"#!/bin/sh\n")
    here = settings_for(tmp_path).machine
    own = ProgramCache(cache.directory, f"linux/{'arm64' if here == 'aarch64' else 'amd64'}")
    kwok = own.install(CATALOG.program("kwok"), staged, "a test").path
    settings = settings_for(tmp_path, KUBEBUILDER_ASSETS=str(assets))
    binaries = ensure_binaries(settings, ["etcd", "kwok"])
    assert (binaries.etcd, binaries.kwok) == (assets / "etcd", kwok)
    assert binaries.source == "KUBEBUILDER_ASSETS, a test"


def test_incomplete_own_directory_is_refused_and_says_what_is_missing(tmp_path: Path) -> None:
    assets = own_programs(tmp_path / "own", "etcd", "kwok")
    settings = settings_for(tmp_path, KUBEBUILDER_ASSETS=str(assets))
    with pytest.raises(BinariesUnavailable, match=r"lacks kube-apiserver, kubectl; add .*or unset"):
        ensure_binaries(settings, ["etcd"])


def test_own_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, KUBEBUILDER_ASSETS=str(tmp_path / "none"))
    with pytest.raises(BinariesUnavailable, match=r"none lacks kube-apiserver, etcd, kubectl;"):
        ensure_binaries(settings)


def test_own_program_of_another_architecture_is_refused(tmp_path: Path) -> None:
    foreign = b"\x7fELF\x02\x01" + bytes(12) + b"\xf3\x00" + bytes(44)
    assets = own_programs(tmp_path / "own", "kube-apiserver", "etcd", "kubectl", content=foreign)
    settings = settings_for(tmp_path, KUBEBUILDER_ASSETS=str(assets))
    with pytest.raises(BinariesUnavailable, match=r"etcd is for riscv64, and this machine is a"):
        ensure_binaries(settings, ["etcd"])


def test_own_program_that_may_not_be_run_is_refused(tmp_path: Path) -> None:
    assets = own_programs(tmp_path / "own", "kube-apiserver", "etcd", "kubectl")
    (assets / "etcd").chmod(0o644)
    settings = settings_for(tmp_path, KUBEBUILDER_ASSETS=str(assets))
    with pytest.raises(BinariesUnavailable, match=r"etcd may not be executed; run chmod \+x"):
        ensure_binaries(settings, ["etcd"])


def test_interpreter_itself_passes_as_a_program_of_this_machine(tmp_path: Path) -> None:
    assets = own_programs(tmp_path / "own", "kube-apiserver", "kubectl")
    (assets / "etcd").symlink_to(Path(sys.executable).resolve())
    settings = settings_for(tmp_path, KUBEBUILDER_ASSETS=str(assets))
    assert ensure_binaries(settings, ["etcd"]).etcd == assets / "etcd"


def test_all_sources_off_says_which_switch(tmp_path: Path) -> None:
    with pytest.raises(
        BinariesUnavailable,
        match="no source is left for etcd, because QUARTERDECK_DOWNLOAD and QUARTERDECK_BUILD",
    ):
        ensure_binaries(settings_for(tmp_path), ["etcd"])


def test_rest_of_a_finished_build_is_removed(tmp_path: Path, cache: ProgramCache) -> None:
    """A build that was killed while it cleared away does not leave gigabytes for ever."""
    rest = cache.directory / "build.done" / "mod"
    rest.mkdir(parents=True)
    with pytest.raises(BinariesUnavailable):
        ensure_binaries(settings_for(tmp_path), ["etcd"])
    assert not rest.parent.exists()
