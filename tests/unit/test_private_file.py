"""A private file is replaced in one step, also in a directory that somebody hostile may change."""

import os
from pathlib import Path

import pytest

from quarterdeck.private_file import write_private


@pytest.fixture
def file(tmp_path: Path) -> Path:
    directory = tmp_path / "directory"
    directory.mkdir()
    return directory / "kubeconfig"


def test_only_the_owner_reads_it_and_nothing_is_left_beside_it(file: Path) -> None:
    for data in (b"old", b"new"):
        write_private(file, data)
        assert file.read_bytes() == data
        assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("name", ["kubeconfig", ".kubeconfig.{pid}"])
def test_a_link_that_was_planted_leads_nowhere(file: Path, tmp_path: Path, name: str) -> None:
    """Else a static pod would get any file of root: its credentials are written for its user."""
    victim = tmp_path / "passwd"
    victim.write_text("root")
    before = victim.stat()
    (file.parent / name.format(pid=os.getpid())).symlink_to(victim)
    write_private(file, b"new", owner=os.geteuid())
    assert victim.read_text() == "root"
    assert victim.stat().st_mtime_ns == before.st_mtime_ns
    assert not file.is_symlink()
    assert file.read_bytes() == b"new"


def test_what_a_killed_process_left_is_replaced(file: Path) -> None:
    left = file.with_name(f".kubeconfig.{os.getpid()}")
    left.write_text("half of a k")
    left.chmod(0o644)
    write_private(file, b"new")
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o600
