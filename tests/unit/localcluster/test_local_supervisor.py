"""A cluster that runs goes on while its status cannot be written."""

import errno

import pytest

from quarterdeck.localcluster.status import ClusterStatus
from quarterdeck.localcluster.supervisor import Supervisor, _Stop


class OnAFullDisk(Supervisor):
    """A supervisor without components; the third write has room, and then a signal comes."""

    def __init__(self) -> None:
        self._states = {}
        self.writes = 0

    def _write(self) -> ClusterStatus:
        self.writes += 1
        if self.writes < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        raise _Stop


def test_a_full_disk_ends_no_cluster() -> None:
    """Else a component that crashes then takes all others with it."""
    supervisor = OnAFullDisk()
    with pytest.raises(_Stop):
        supervisor._watch()
    assert supervisor.writes == 3
