"""The status file: written, read, and not believed when its writer is gone."""

import os
from pathlib import Path

import pytest

from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.localcluster.order import ClusterOrder, decode, encode
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import (
    ClusterStatus,
    ProcessIdentity,
    kubectl_environment,
    read_status,
    running_status,
    write_status,
)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


def status(supervisor: ProcessIdentity) -> ClusterStatus:
    return ClusterStatus(phase="ready", supervisor=supervisor, since=0)


def test_the_status_of_a_living_supervisor_counts(layout: Layout) -> None:
    me = ProcessIdentity.of(os.getpid())
    assert me is not None
    write_status(layout, status(me))
    assert running_status(layout) == status(me)


def test_the_status_of_a_dead_supervisor_does_not(layout: Layout) -> None:
    """It can still be read, to learn why it has failed."""
    dead = ProcessIdentity(os.getpid(), 1, "another boot")
    write_status(layout, status(dead))
    assert running_status(layout) is None
    assert read_status(layout) == status(dead)


@pytest.mark.parametrize("text", ["", "{", '{"phase": "singing"}'], ids=repr)
def test_a_damaged_status_is_none(layout: Layout, text: str) -> None:
    layout.status.write_text(text)
    assert read_status(layout) is None


def test_kubectl_is_pointed_at_the_cluster_and_away_from_home(layout: Layout) -> None:
    environment = kubectl_environment(layout)
    assert environment["KUBECONFIG"] == str(layout.kubeconfig)
    assert all(value.startswith(str(layout.root)) for value in environment.values())


def test_an_order_survives_the_way_to_another_process() -> None:
    binaries = Binaries({"etcd": Path("/bin/etcd")}, {"etcd": "cache"})
    order = ClusterOrder(state=Path("/state"), binaries=binaries, api_port=4711, foreground=True)
    assert decode(encode(order)) == order
