"""The node's small pure parts: images, addresses, probes, what is not supported, placement."""

import asyncio
import re
from pathlib import PurePosixPath
from typing import Any

import pytest
from tests.places import ROOT

from quarterdeck.localcluster.node.__main__ import user_secrets
from quarterdeck.localcluster.node.addresses import HOSTS, NoAddressError, lock_network
from quarterdeck.localcluster.node.heartbeat import is_reported, keep_transitions, node_status
from quarterdeck.localcluster.node.images import (
    PATTERN,
    Installation,
    find_image,
    this_installation,
)
from quarterdeck.localcluster.node.placement import desired_node, desired_policy
from quarterdeck.localcluster.node.pod.probes import (
    ProbeStreak,
    judge,
    make_probe,
    port_number,
)
from quarterdeck.localcluster.node.pod.tokens import issued_by
from quarterdeck.localcluster.node.pod.unsupported import unsupported
from quarterdeck.localcluster.node.sandbox.bubblewrap import remedy
from quarterdeck.localcluster.node.sandbox.entry import NotEnterable
from quarterdeck.localcluster.node.sandbox.lookup import uid_of
from quarterdeck.localcluster.node.settings import NodeSettings
from quarterdeck.localcluster.node.static_pods.static import MIRROR
from quarterdeck.localcluster.node.times import parse_time
from quarterdeck.localcluster.node.volumes.contents import Token

HERE = Installation(programs="/venv/bin", directories=(PurePosixPath("/venv"),))


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("quarterdeck", True),
        ("quarterdeck:v1.2", True),
        ("quay.io/team/quarterdeck@sha256:0123", True),
        ("localhost:5000/quarterdeck:v1@sha256:0123", True),
        ("registry.example/quarterdeck-router:latest", True),
        ("registry.example/quarterdeck-release:1.0.0", True),
        ("nginx", False),
        ("quarterdeck/nginx", False),
        ("my-quarterdeck", False),
        ("quarterdeck-other", False),
        ("", False),
    ],
)
def test_which_images_are_ours(name: str, ours: bool) -> None:
    assert (find_image(name, HERE) is not None) is ours


def test_an_image_of_ours_runs_this_installation() -> None:
    image = find_image("quarterdeck", HERE)
    assert image is not None
    assert image.entrypoint == ("/venv/bin/quarterdeck",)
    assert image.variables["PATH"].startswith("/venv/bin:")


def test_this_installation_names_the_package_itself() -> None:
    """A clone in a scratch directory would not run otherwise."""
    package = PurePosixPath(ROOT) / "src"
    assert any(place in (package, *package.parents) for place in this_installation().directories)


def test_two_agents_never_share_a_network() -> None:
    """Not even with the same seed; and a network that is let go can be had again."""
    first, second = lock_network("seed"), lock_network("seed")
    try:
        assert first.prefix != second.prefix
        for network in (first, second):
            assert re.fullmatch(r"127\.\d+\.\d+", network.prefix)
            assert 1 <= int(network.prefix.split(".")[1]) <= 254
        prefix = first.prefix
        first.close()
        first = lock_network("seed")
        assert first.prefix == prefix
    finally:
        first.close()
        second.close()


def test_addresses_are_kept_wanted_and_not_given_twice() -> None:
    network = lock_network("addresses")
    try:
        wanted = f"{network.prefix}.77"
        assert network.address("a", wanted) == wanted
        assert network.address("a") == wanted
        assert network.address("b", wanted) != wanted
        assert network.address("c", "10.0.0.1").startswith(network.prefix)
        network.release("a")
        given = {network.address(str(number)) for number in range(len(HOSTS) - 2)}
        assert len(given) == len(HOSTS) - 2
        with pytest.raises(NoAddressError, match="are taken"):
            network.address("one too many")
    finally:
        network.close()


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        pytest.param([], None, id="none without an answer"),
        pytest.param([False], None, id="none before the threshold"),
        pytest.param([False, False], False, id="failed at the threshold"),
        pytest.param([True], None, id="one success of two"),
        pytest.param([True, True], True, id="passed at the threshold"),
        pytest.param([True, True, False], True, id="one failure changes nothing yet"),
        pytest.param([True, True, False, True, False], True, id="a success between starts over"),
        pytest.param([True, True, False, False], False, id="two in a row do"),
    ],
)
def test_verdicts(answers: list[bool], verdict: bool | None) -> None:
    probe = {"failureThreshold": 2, "successThreshold": 2}
    row = ProbeStreak()
    for ok in answers:
        row = judge(probe, row, ok)
    assert row.result is verdict


@pytest.mark.parametrize("error", [KeyError("x"), RuntimeError("no thread"), AssertionError()])
async def test_a_probe_that_cannot_be_made_has_failed(error: Exception) -> None:
    """It is made again: one that ends for good would never act."""

    async def execute(command: list[str], seconds: float) -> tuple[int, str]:
        raise error

    outcome = await make_probe({"exec": {"command": ["true"]}}, {}, "", execute)
    assert not outcome.ok
    assert outcome.message


async def test_a_probe_that_is_cancelled_from_inside_has_failed() -> None:
    async def execute(command: list[str], seconds: float) -> tuple[int, str]:
        raise asyncio.CancelledError

    assert not (await make_probe({"exec": {"command": ["true"]}}, {}, "", execute)).ok


@pytest.mark.parametrize("uid", ["../../etc", "/tmp/x", "a/b"])
def test_an_annotation_leads_to_no_other_files(uid: str) -> None:
    with pytest.raises(NotEnterable, match="not of this node"):
        uid_of({"metadata": {"name": "p", "uid": "u", "annotations": {MIRROR: uid}}})


def test_ports_by_name() -> None:
    container = {"ports": [{"name": "http", "containerPort": 8080}]}
    assert port_number("http", container) == 8080
    assert port_number(9, container) == 9
    with pytest.raises(ValueError, match="no port of this name"):
        port_number("metrics", container)


@pytest.mark.parametrize(
    ("container", "spec", "said"),
    [
        pytest.param({}, {}, [], id="a plain container asks for nothing special"),
        pytest.param(
            {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
            {},
            ["container c: resources.limits (cpu, memory): not enforced"],
            id="limits",
        ),
        pytest.param({}, {"hostPID": True}, ["spec.hostPID: the pod has"], id="host namespaces"),
        pytest.param(
            {"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}},
            {},
            ["container c: capabilities.add (NET_ADMIN): all are dropped"],
            id="capabilities",
        ),
        pytest.param(
            {"lifecycle": {"postStart": {}}},
            {},
            ["container c: lifecycle.postStart: not run"],
            id="postStart",
        ),
        pytest.param(
            {},
            {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]},
            ["volume v: emptyDir.sizeLimit: not enforced"],
            id="size limits",
        ),
    ],
)
def test_unsupported(container: dict[str, Any], spec: dict[str, Any], said: list[str]) -> None:
    pod = {"spec": {"containers": [{"name": "c", **container}], **spec}}
    found = unsupported(pod, root=True)
    assert len(found) == len(said)
    for line, expected in zip(found, said, strict=True):
        assert line.startswith(expected)


@pytest.mark.parametrize(
    ("container", "spec", "said"),
    [
        ({"ports": [{"containerPort": 1, "hostPort": 2}]}, {}, "container c: ports.hostPort (2)"),
        ({}, {"securityContext": {"sysctls": [{"name": "a", "value": "1"}]}}, "spec.securityCont"),
        ({}, {"hostUsers": False}, "spec.hostUsers: false"),
        ({}, {"dnsPolicy": "ClusterFirstWithHostNet"}, "spec.dnsPolicy ClusterFirstWithHostNet"),
        ({}, {"setHostnameAsFQDN": True}, "spec.setHostnameAsFQDN"),
        (
            {"securityContext": {"appArmorProfile": {"type": "Localhost"}}},
            {},
            "container c: securityContext.appArmorProfile",
        ),
        (
            {"volumeMounts": [{"name": "v", "mountPropagation": "Bidirectional"}]},
            {},
            "container c: mountPropagation (v)",
        ),
    ],
)
def test_what_a_pod_asks_for_in_vain_is_said(
    container: dict[str, Any], spec: dict[str, Any], said: str
) -> None:
    pod = {"spec": {"containers": [{"name": "c", **container}], **spec}}
    (line,) = unsupported(pod, root=True)
    assert line.startswith(said)


def test_groups_that_cannot_be_taken() -> None:
    """Root takes any; and the defaults of every pod ask for nothing."""
    pod: dict[str, Any] = {
        "spec": {
            "containers": [{"name": "c"}],
            "dnsPolicy": "ClusterFirst",
            "securityContext": {"fsGroup": 5, "supplementalGroups": [6]},
        }
    }
    assert unsupported(pod, root=True) == []
    (line,) = unsupported(pod, root=False)
    assert "supplementalGroups, fsGroup: only root" in line


def test_users_that_cannot_be_taken() -> None:
    """Root takes any user but has no image's user; others take none."""
    pod: dict[str, Any] = {
        "spec": {
            "securityContext": {"runAsNonRoot": True, "runAsUser": 5},
            "containers": [{"name": "c"}],
        }
    }
    assert unsupported(pod, root=True) == []
    assert "only root can take other users" in unsupported(pod, root=False)[0]
    del pod["spec"]["securityContext"]["runAsUser"]
    assert "runs as root" in unsupported(pod, root=True)[0]
    assert unsupported(pod, root=False) == []


def test_the_policy_asks_with_the_same_pattern() -> None:
    """Python and CEL must agree on which images are ours."""
    (ours, _) = desired_policy()["spec"]["variables"]
    assert PATTERN in ours["expression"].replace("\\\\", "\\")


def test_the_node_is_tainted_and_has_the_roles() -> None:
    node = desired_node()
    assert node["spec"]["taints"][0]["effect"] == "NoSchedule"
    assert "node-role.kubernetes.io/master" in node["metadata"]["labels"]


SETTINGS = NodeSettings(
    pods=__file__,  # type: ignore[arg-type]
    api_host="127.0.0.1",
    api_port=1,
    installation=HERE,
    root=True,
)


def test_a_heartbeat_moves_no_transition_time() -> None:
    old = node_status(SETTINGS, 1, parse_time("2026-03-01T12:00:00Z"))
    new = node_status(SETTINGS, 1, parse_time("2026-03-01T12:05:00Z"))
    kept = keep_transitions(new, old)["conditions"]
    assert {each["lastTransitionTime"] for each in kept} == {"2026-03-01T12:00:00Z"}
    assert {each["lastHeartbeatTime"] for each in kept} == {"2026-03-01T12:05:00Z"}


def test_a_status_that_others_have_changed_is_told_again() -> None:
    """After an outage: the control plane marked the node Unknown when its lease expired."""
    old = node_status(SETTINGS, 1, parse_time("2026-03-01T12:00:00Z"))
    new = node_status(SETTINGS, 1, parse_time("2026-03-01T12:05:00Z"))
    foreign = {"type": "NetworkUnavailable", "status": "False"}
    unknown = [entry | {"status": "Unknown", "reason": "x"} for entry in old["conditions"]]
    assert is_reported(new, old)
    assert is_reported(new, old | {"conditions": [*old["conditions"], foreign], "images": []})
    assert not is_reported(new, {})
    assert not is_reported(new, old | {"conditions": unknown})
    assert not is_reported(node_status(SETTINGS, 2, parse_time("2026-03-01T12:05:00Z")), old)


@pytest.mark.parametrize(
    ("asked", "answered", "renewed_after"),
    [
        pytest.param(3600, {"expirationSeconds": 3600}, 2880, id="its share of what was asked"),
        pytest.param(3600, {"expirationSeconds": 600}, 480, id="the server gives less"),
        pytest.param(3607, {"expirationSeconds": 31536000}, 2885.6, id="the server gives more"),
        pytest.param(3600, {}, 2880, id="the server does not say"),
    ],
)
@pytest.mark.parametrize("date", ["1970-01-01T00:00:00Z", "2026-03-01T12:00:00Z", "2999-01-01"])
def test_a_token_is_renewed_by_its_life_and_not_by_a_date(
    asked: int, answered: dict[str, int], renewed_after: float, date: str
) -> None:
    """Neither our clock nor the server's has to be right, or may not be set."""
    answer = {"spec": answered, "status": {"token": "t", "expirationTimestamp": date}}
    issued = issued_by(answer, Token("", asked), 0.8, 1000.0)
    assert issued.renew_at == pytest.approx(1000.0 + renewed_after)


@pytest.mark.parametrize(
    ("kernel", "helps"),
    [
        pytest.param(
            {"user.max_user_namespaces": "0"},
            "sudo sysctl user.max_user_namespaces=15000, or run as root",
            id="none are allowed at all",
        ),
        pytest.param(
            {"kernel.unprivileged_userns_clone": "0", "user.max_user_namespaces": "63000"},
            "sudo sysctl kernel.unprivileged_userns_clone=1, or run as root",
            id="Debian's switch",
        ),
        pytest.param(
            {"kernel.apparmor_restrict_unprivileged_userns": "1"},
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root",
            id="Ubuntu's",
        ),
        pytest.param({}, "outside of the container that forbids it", id="something else"),
    ],
)
def test_what_helps_where_user_namespaces_are_forbidden(kernel: dict[str, str], helps: str) -> None:
    assert remedy(kernel).endswith(helps)


@pytest.mark.parametrize(
    ("env", "hidden"),
    [
        pytest.param(
            {"HOME": "/home/u"},
            ["/home/u/.kube", "/home/u/.local/state/quarterdeck"],
            id="kubeconfigs and the state of all clusters",
        ),
        pytest.param(
            {"HOME": "/h", "XDG_STATE_HOME": "/s", "KUBECONFIG": "/k/one:relative:/k/two"},
            ["/h/.kube", "/s/quarterdeck", "/k/one", "/k/two"],
            id="wherever the user has put them",
        ),
    ],
)
def test_what_pods_do_not_see_of_the_user(env: dict[str, str], hidden: list[str]) -> None:
    assert [str(path) for path in user_secrets(env)] == hidden
