"""What integration tests share beyond the fixtures of `quarterdeck.testing`."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documents import Shell

from quarterdeck.localcluster.binaries import Binaries


@pytest.fixture
def newcomer(tmp_path: Path, control_plane_binaries: Binaries) -> Iterator[Shell]:
    """A newcomer's shell, with a home directory that has no cluster; its cluster goes with it."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {"HOME": str(home), "XDG_STATE_HOME": str(home / ".local" / "state")}
    run = Shell(tmp_path, environment, control_plane_binaries)
    yield run
    run("quarterdeck local down --purge")
