"""The command lines of the components."""

from pathlib import Path

import pytest

from quarterdeck.localcluster.components import (
    COMPONENTS,
    THIS_MACHINE,
    Component,
    Setup,
    arguments,
)
from quarterdeck.localcluster.ports import Ports
from quarterdeck.localcluster.state import Layout

PORTS = Ports(
    kube_apiserver=1001,
    etcd_client=1002,
    etcd_peer=1003,
    kube_controller_manager=1004,
    kube_scheduler=1005,
    this_machine=6,
)
SETUP = Setup(layout=Layout(Path("/state")), ports=PORTS, stages=Path("/stages.yaml"))


def option(argv: list[str], name: str) -> str:
    """The value of the one option of that name."""
    (value,) = [word.partition("=")[2] for word in argv if word.partition("=")[0] == f"--{name}"]
    return value


@pytest.mark.parametrize("component", [*COMPONENTS, THIS_MACHINE])
def test_every_address_is_loopback(component: Component) -> None:
    """No URL and no bind address leads beyond this machine."""
    argv = arguments(component, SETUP)
    urls = [word for word in argv if "https://1" in word]
    assert all("https://127.0.0.1:" in url for url in urls)
    assert all(option([word], "bind-address") == "127.0.0.1" for word in argv if "--bind" in word)
    assert not any("http://" in word or "0.0.0" in word for word in argv)


@pytest.mark.parametrize("component", [*COMPONENTS, THIS_MACHINE])
def test_no_option_is_given_twice(component: Component) -> None:
    names = [word.partition("=")[0] for word in arguments(component, SETUP)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        pytest.param("kube-apiserver", "--anonymous-auth=false", id="nobody is anonymous"),
        pytest.param(
            "kube-apiserver", "--authorization-mode=Node,RBAC", id="rights come from RBAC"
        ),
        pytest.param(
            "kube-apiserver",
            "--enable-admission-plugins=NodeRestriction",
            id="a node changes only its own objects",
        ),
        pytest.param(
            "kube-apiserver", "--endpoint-reconciler-type=none", id="no endpoint on loopback"
        ),
        pytest.param("etcd", "--client-cert-auth", id="etcd wants its clients' certificates"),
        pytest.param("etcd", "--peer-client-cert-auth", id="etcd wants its peers' certificates"),
        pytest.param(
            "kube-controller-manager",
            "--use-service-account-credentials=true",
            id="each controller has its own account",
        ),
        pytest.param("kwok", "--manage-single-node=simulated", id="kwok plays one node alone"),
        pytest.param("kwok", "--node-port=0", id="kwok listens nowhere"),
    ],
)
def test_safety_is_on(component: Component, expected: str) -> None:
    assert expected in arguments(component, SETUP)


def test_etcd_trusts_its_own_authority_only() -> None:
    """A certificate of the cluster's authority opens nothing at etcd."""
    assert option(arguments("etcd", SETUP), "trusted-ca-file") == "/state/pki/etcd-ca.crt"
    assert option(arguments("kube-apiserver", SETUP), "client-ca-file") == "/state/pki/ca.crt"


@pytest.mark.parametrize(
    ("durable", "unsafe"),
    [
        pytest.param(True, False, id="a cluster that is kept syncs to disk"),
        pytest.param(False, True, id="a cluster for tests need not"),
    ],
)
def test_durability(durable: bool, unsafe: bool) -> None:
    setup = Setup(layout=SETUP.layout, ports=PORTS, stages=SETUP.stages, durable=durable)
    assert ("--unsafe-no-fsync" in arguments("etcd", setup)) is unsafe


@pytest.mark.parametrize("audit", [True, False], ids=["audit on", "audit off"])
def test_audit_log_is_a_choice(audit: bool) -> None:
    setup = Setup(layout=SETUP.layout, ports=PORTS, stages=SETUP.stages, audit=audit)
    argv = arguments("kube-apiserver", setup)
    assert ("--audit-log-path=/state/logs/audit.log" in argv) is audit
