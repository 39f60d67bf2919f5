"""The account of the cluster version operator."""

from pathlib import Path

import pytest

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.operator_process import own_account


@pytest.fixture(scope="module")
def account(control_plane: ControlPlane, crds: list[str]) -> Path:
    """The kubeconfig of the operator's own account, which stays: its namespace is slow to go."""
    return own_account(control_plane, "cluster-version")
