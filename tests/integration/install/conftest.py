"""A control plane for each file of tests about installations, and a shell for its administrator."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documents import Shell

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.binaries import Binaries


@pytest.fixture(scope="module")
def plane(
    control_plane_binaries: Binaries, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane without a definition of ours."""
    state = tmp_path_factory.mktemp("installed")
    with ControlPlane(state, control_plane_binaries, durable=False, audit=True) as running:
        yield running


@pytest.fixture
def shell(plane: ControlPlane, tmp_path: Path) -> Shell:
    """A shell with the administrator's kubeconfig."""
    return Shell(tmp_path, {"KUBECONFIG": str(plane.kubeconfig)})
