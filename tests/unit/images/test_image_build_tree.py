"""The files of an image as a directory, and what the command refuses before it builds."""

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from quarterdeck.cli.main import cli
from quarterdeck.images.build import write_tree
from quarterdeck.images.errors import BuildError
from quarterdeck.images.python_files import source_directory
from quarterdeck.oci.layers import Entry


def test_files_of_a_tree_have_their_modes_whatever_the_umask(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("content")
    entries = [
        Entry(path="usr/bin/program", mode=0o755, content=source),
        Entry(path="usr/bin/link", link="program"),
        Entry(path="tmp", mode=0o1777),
        Entry(path="etc/file", content=b"text"),
    ]
    before = os.umask(0o077)
    try:
        write_tree(entries, tmp_path / "tree")
    finally:
        os.umask(before)
    found = {
        str(path.relative_to(tmp_path)): stat.S_IMODE(path.lstat().st_mode)
        for path in (tmp_path / "tree", *(tmp_path / "tree").rglob("*"))
        if not path.is_symlink()
    }
    assert found == {
        "tree": 0o755,
        "tree/etc": 0o755,
        "tree/etc/file": 0o644,
        "tree/tmp": 0o1777,
        "tree/usr": 0o755,
        "tree/usr/bin": 0o755,
        "tree/usr/bin/program": 0o755,
    }
    assert (tmp_path / "tree/usr/bin/link").read_text() == "content"


@pytest.mark.parametrize(
    ("arguments", "epoch", "told"),
    [
        ((), "", "name what to write"),
        (("-o", "a", "--tree", "b"), "", "name what to write"),
        (("-o", "a"), "yesterday", "SOURCE_DATE_EPOCH is 'yesterday'"),
        (("-o", "a", "--source", "."), "", "name a checkout of Quarterdeck with --source"),
    ],
)
def test_what_cannot_be_built_is_told_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    epoch: str,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    result = CliRunner().invoke(cli, ["image", "build", *arguments])
    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_source_is_the_checkout_that_runs() -> None:
    assert (source_directory(None) / "pyproject.toml").is_file()
    with pytest.raises(BuildError, match="--source"):
        source_directory(Path("/"))
