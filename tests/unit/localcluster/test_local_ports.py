"""Choosing, keeping and checking ports."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.localcluster.errors import PortTaken
from quarterdeck.localcluster.ports import (
    CANDIDATES,
    Ports,
    check_ports,
    choose_ports,
    holder_of,
    is_free,
    listening_inodes,
    ports_of,
)
from quarterdeck.localcluster.state import Layout, prepare


@pytest.fixture
def listener() -> Iterator[int]:
    """A port on which this process listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "state")
    prepare(layout)
    return layout


def test_ports_are_different_and_out_of_the_way_of_outgoing_connections() -> None:
    ports = choose_ports().by_component()
    assert len(ports) == len(Ports.__struct_fields__)
    first_outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(port in CANDIDATES and port < first_outgoing for port in ports)


def test_ports_are_chosen_once_and_kept(layout: Layout) -> None:
    assert ports_of(layout) == ports_of(layout)


def test_a_port_that_is_asked_for_is_kept_too(layout: Layout) -> None:
    before = ports_of(layout)
    assert ports_of(layout, api_port=4711).kube_apiserver == 4711
    assert ports_of(layout).kube_apiserver == 4711
    assert ports_of(layout).etcd_client == before.etcd_client


def test_a_port_that_is_asked_for_is_taken_from_who_had_it(layout: Layout) -> None:
    """Asking for etcd's port by chance gives etcd another one."""
    wanted = ports_of(layout).etcd_client
    ports = ports_of(layout, api_port=wanted)
    assert ports.kube_apiserver == wanted
    assert len(ports.by_component()) == len(Ports.__struct_fields__)


def test_a_taken_port_is_named_with_its_holder(layout: Layout, listener: int) -> None:
    ports = ports_of(layout, api_port=listener)
    with pytest.raises(PortTaken) as caught:
        check_ports(ports, timeout=0)
    message = str(caught.value)
    assert f"port {listener} of kube-apiserver is taken by" in message
    assert f"(pid {os.getpid()})" in message
    assert "\n" not in message


def test_free_ports_are_no_fault(layout: Layout) -> None:
    check_ports(ports_of(layout), timeout=0)


def test_is_free_sees_a_listener(listener: int) -> None:
    assert not is_free(listener)


def test_nobody_holds_a_free_port() -> None:
    assert holder_of(choose_ports().etcd_peer) is None


TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0
   1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0
   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0
"""


@pytest.mark.parametrize(
    ("port", "inodes"),
    [
        pytest.param(0x1F90, ["111"], id="a connection is not a listener"),
        pytest.param(0x1F91, ["333"], id="the port decides"),
        pytest.param(80, [], id="nobody listens"),
    ],
)
def test_listeners_are_read_from_the_kernels_table(port: int, inodes: list[str]) -> None:
    assert listening_inodes(TABLE, port) == inodes
