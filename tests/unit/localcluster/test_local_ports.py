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
    operator_ports,
    ports_of,
    stored_operator_ports,
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
        check_ports(ports.by_component(), timeout=0)
    message = str(caught.value)
    assert f"port {listener} of kube-apiserver is taken by" in message
    assert f"(pid {os.getpid()})" in message
    assert "\n" not in message


def test_free_ports_are_no_fault(layout: Layout) -> None:
    check_ports(ports_of(layout).by_component(), timeout=0)


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


def test_the_ports_of_an_operator_are_chosen_once_and_kept(layout: Layout) -> None:
    first = operator_ports(layout, "web", ["http", "https"])
    assert operator_ports(layout, "web", ["http", "https"]) == first
    more = operator_ports(layout, "web", ["http", "https", "stats"])
    assert {name: more[name] for name in first} == first
    other = operator_ports(layout, "other", ["http"])
    numbers = [*more.values(), *other.values(), *ports_of(layout).by_component()]
    assert len(set(numbers)) == len(numbers)
    assert all(number in CANDIDATES for number in more.values())


def test_two_clusters_on_one_machine_have_other_ports(layout: Layout, tmp_path: Path) -> None:
    """The first one's are taken: it runs."""
    first = operator_ports(layout, "web", ["http"])["http"]
    beside = Layout(tmp_path / "beside")
    prepare(beside)
    with socket.create_server(("127.0.0.1", first)):
        chosen = {operator_ports(beside, str(each), ["http"])["http"] for each in range(50)}
    assert first not in chosen


def test_a_taken_port_of_an_operator_is_named_with_the_operator(layout: Layout) -> None:
    number = operator_ports(layout, "web", ["http"])["http"]
    check_ports(stored_operator_ports(layout), timeout=0)
    with socket.create_server(("127.0.0.1", number)), pytest.raises(PortTaken) as caught:
        check_ports(stored_operator_ports(layout), timeout=0)
    assert f"port {number} of the operator web (http) is taken by" in str(caught.value)


def test_a_damaged_list_of_ports_is_chosen_anew(layout: Layout) -> None:
    layout.operator_ports.write_text("{")
    assert stored_operator_ports(layout) == {}
    assert operator_ports(layout, "web", ["http"])
