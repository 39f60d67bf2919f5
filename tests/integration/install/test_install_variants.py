"""Choices of an installation, with pods that run: all in one, console, operators, Prometheus.

After each, `uninstall` leaves nothing.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.all_objects import all_objects
from tests.documents import Shell
from tests.installed_release import own_release, push
from tests.integration.pods import needs_bubblewrap
from tests.objects import definition, note
from tests.registry_process import running_registry

from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.waiting import eventually, until

pytestmark = [pytest.mark.slow, needs_bubblewrap]

IMAGE = "registry.example.test/ship/quarterdeck:1.0.0"
THEIRS = "quarterdeck-sample"
ROUTER = "registry.example.test/ship/quarterdeck-router:1.0.0"


@pytest.fixture(scope="module")
def node(plane: ControlPlane) -> ControlPlane:
    """A node that runs pods of our images, and two of the Prometheus operator's kinds.

    A namespace that an operator needs is there already, and stays.
    """
    plane.add_this_machine()
    plane.start("this-machine")
    plane.kubectl("create", "namespace", THEIRS)
    for kind in ("ServiceMonitor", "PrometheusRule"):
        made = definition("monitoring.coreos.com", kind)
        plane.kubectl("create", "--filename=-", input=json.dumps(made))
    plane.kubectl("wait", "crds", "--all", "--for=condition=Established", "--timeout=60s")
    return plane


@pytest.fixture(autouse=True)
def nothing_is_left(node: ControlPlane, shell: Shell) -> Iterator[None]:
    """Uninstall after the test, and compare all objects."""
    before = all_objects(node.kubeconfig)
    yield
    shell.succeed("quarterdeck uninstall --yes")
    assert all_objects(node.kubeconfig) == before
    assert node.kubectl("get", "leases", f"--namespace={THEIRS}", "--output=name").stdout == ""


def available(plane: ControlPlane, namespace: str, name: str) -> bool:
    found = plane.kubectl("get", "deployment", name, f"--namespace={namespace}", "--output=json")
    conditions = json.loads(found.stdout)["status"].get("conditions", [])
    return ("Available", "True") in {(one["type"], one["status"]) for one in conditions}


def says_hello(plane: ControlPlane) -> str:
    """The text of the ConfigMap that the sample operator makes of a Note."""
    found = plane.kubectl("get", "configmap", "hello", "--output=json", check=False)
    data: dict[str, str] = json.loads(found.stdout or "{}").get("data") or {}
    return "".join(data.values())


def test_all_in_one_with_the_console(node: ControlPlane, shell: Shell) -> None:
    """One process does the work of all operators; a release beside it is refused."""
    command = f"quarterdeck install --image {ROUTER} --all-in-one --console"
    done = shell.succeed(command)
    assert "the operators run" in done.stdout
    found = node.kubectl("get", "deployments", "--all-namespaces", "--output=json")
    names = {one["metadata"]["name"] for one in json.loads(found.stdout)["items"]}
    assert names == {"quarterdeck", "console"}
    assert available(node, "quarterdeck", "quarterdeck")
    assert available(node, "quarterdeck-console", "console")
    node.kubectl("create", "--filename=-", input=json.dumps(note("hello", "Hello", "default")))
    eventually(lambda: "Hello" in says_hello(node), "the sample operator works")
    until(
        lambda: node.kubectl("get", "clusteroperators", "--output=name").stdout,
        lambda seen: all(name in seen for name in ("/sample", "/ingress", "/machine-api")),
        "the operators report",
    )
    shell.succeed(command)
    refused = shell(f"quarterdeck install --image {IMAGE}")
    assert refused.returncode == 1
    assert "all operators run in one Deployment here" in refused.stderr
    assert "with objects of users: 1 Note" in shell("quarterdeck uninstall --dry-run").stdout


def test_some_operators_with_monitoring(node: ControlPlane, shell: Shell, tmp_path: Path) -> None:
    """The release brings only what was asked for, and Prometheus hears only of that."""
    with running_registry(tmp_path / "registry") as real:
        release = push(real, own_release(tmp_path / "release", "1.0.0"))
        done = shell.succeed(
            f"quarterdeck install --image {release} --operators sample,staleness --monitoring "
            f"--console --pull-secret {real.secret} --registry-ca {real.tls.ca}"
        )
    assert "the release is applied" in done.stdout
    assert "does not serve PodMonitor of monitoring.coreos.com" in done.stdout
    found = node.kubectl("get", "deployments", "--all-namespaces", "--output=json")
    names = {one["metadata"]["name"] for one in json.loads(found.stdout)["items"]}
    assert names == {
        "cluster-version-operator",
        "sample-operator",
        "staleness-checker",
        "console",
    }
    objects = all_objects(node.kubeconfig)
    rules = {name for kind, _, name in objects if kind.startswith("PrometheusRule.")}
    assert rules == {f"quarterdeck-{one}" for one in ("cluster-version", "sample", "staleness")}
    assert ("ConfigMap.", "openshift-cluster-version", "quarterdeck-dashboard") in objects
    refused = shell(f"quarterdeck install --image {IMAGE} --all-in-one")
    assert refused.returncode == 1
    assert "--all-in-one: the cluster version operator is installed" in refused.stderr
