"""The releases A to D, moved between by the cluster version operator.

The machine API operator and the baremetal operator run from the Deployments of the releases, under
their own accounts, as processes of the node `this-machine`.
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml
from tests.integration.operators.baremetal.metal import ACCOUNTS, PROVISIONING, SPEC, Metal
from tests.integration.operators.cluster_version.version.releases import Cluster
from tests.integration.pods import needs_bubblewrap

from quarterdeck.api.custom_resource import SELF_MANAGED
from quarterdeck.api.meta import Object
from quarterdeck.delivery.monitoring import service_monitor_objects
from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.handover_releases import write_handover_releases
from quarterdeck.localcluster.operators import find_operator
from quarterdeck.metal3.names import (
    BAREMETAL_OWNS,
    MACHINE_API_OWNS,
    NAMESPACE,
    PASSWORD_SECRET,
)
from quarterdeck.payload.annotations import CREATE_ONLY, INCLUDE
from quarterdeck.payload.seal import seal
from quarterdeck.testing.answer_monitor import AnswerMonitor
from quarterdeck.testing.operator_process import OwnOperators
from quarterdeck.testing.waiting import eventually

pytestmark = [pytest.mark.slow, needs_bubblewrap]

A, B, C, D = "4.6.0", "4.6.1", "4.7.0", "4.7.1"
OTHER = {"machine-api": "baremetal", "baremetal": "machine-api"}


class Handover(Metal):
    """A cluster that is moved between the releases."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(plane)
        self.cluster = Cluster(plane, NAMESPACE)

    def move(self, version: str, owner: str) -> None:
        """Update, and return when the owner manages metal3 in the new release."""
        self.cluster.ask(version=version)
        self.cluster.wait_release(version, limit=240)
        annotation = MACHINE_API_OWNS if owner == "machine-api" else BAREMETAL_OWNS
        eventually(lambda: self.annotations() == [annotation], f"{owner} owns it", 60)

    def refused(self, version: str, reason: str, text: str) -> None:
        """Ask for an update that is refused, and take the wish back."""
        self.cluster.ask(version=version)
        found = self.cluster.wait_condition("ReleaseAccepted", "False", reason)
        assert text in found["message"]
        assert self.cluster.status()["history"][0]["version"] != version
        self.cluster.patch("clusterversion", "version", {"spec": {"desiredUpdate": None}})
        self.cluster.wait_condition("ReleaseAccepted", "True")

    def written(self) -> dict[str, int]:
        """How often each operator has written the Deployment so far."""
        return {name: len(self.deployment_writes(name)) for name in ACCOUNTS}

    def version(self) -> str:
        """The version of the baremetal operator, as it reports it."""
        status = self.objects.get("clusteroperator", "baremetal")["status"]
        (found,) = (one["version"] for one in status["versions"] if one["name"] == "operator")
        return str(found)

    def metrics(self, operator: str) -> str:
        """What Prometheus gets from the pod that the operator's delivered Service leads to."""
        service, _monitor = service_monitor_objects(find_operator(operator))
        self.objects.apply(service)
        selector = ",".join(f"{key}={value}" for key, value in service["spec"]["selector"].items())
        (pod,) = self.objects.list("pods", selector)
        (container,) = pod["spec"]["containers"]
        (wanted,) = service["spec"]["ports"]
        (port,) = (one for one in container["ports"] if one["name"] == wanted["targetPort"])
        url = f"http://{pod['status']['podIP']}:{port['containerPort']}/metrics"
        with urlopen(url, timeout=10) as answer:
            return str(answer.read(), "utf-8")

    def remove_baremetal(self) -> None:
        """What an administrator does after a downgrade."""
        self.objects.delete("deployment", ACCOUNTS["baremetal"])
        selector = f"app={ACCOUNTS['baremetal']}"
        eventually(lambda: not self.objects.list("pods", selector), "its pod is gone", 60)
        self.objects.delete("clusteroperator", "baremetal")


PASSWORD = "fromTheInstaller"
"""The password that an installer has made; no operator replaces it."""
HOST = "worker-0"


def installers_objects() -> list[Object]:
    """What an installer makes: for kinds that there are not yet, in a namespace that is not yet."""
    annotations = {f"{INCLUDE}{SELF_MANAGED[0]}": "true", CREATE_ONLY: "true"}
    names = {"namespace": NAMESPACE, "annotations": annotations}
    provisioning = {"name": PROVISIONING, "annotations": annotations}
    return [
        {
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "Provisioning",
            "metadata": provisioning,
            "spec": SPEC,
        },
        {
            "apiVersion": "metal3.io/v1alpha1",
            "kind": "BareMetalHost",
            "metadata": {"name": HOST, **names},
            "spec": {"online": True},
        },
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": PASSWORD_SECRET, **names},
            "stringData": {"password": PASSWORD},
        },
    ]


@pytest.fixture
def handover(
    node_agent: ControlPlane,
    without_kinds: None,
    clean_cluster: None,
    own_operators: OwnOperators,
    answer_monitor: AnswerMonitor,
    tmp_path: Path,
) -> Iterator[Handover]:
    """A cluster on bare metal with release A, and metal3 in it, as an installer wants it."""
    root = tmp_path / "releases"
    write_handover_releases(root, with_cluster_version=False)
    early = root / A / "0000_05_installer_01_objects.yaml"
    early.write_text(yaml.safe_dump_all(installers_objects()))
    seal(root / A)
    found = Handover(node_agent)
    found.set_platform("BareMetal")
    start = own_operators(node_agent, "cluster-version", f"--releases={root}")
    cvo = start(f"--release-version={A}")
    found.cluster.wait_release(A)
    found.wait_running("machine-api")
    yield found
    cvo.kill()
    found.objects.delete("baremetalhost", HOST)
    found.clean_up()


def test_every_supported_update_keeps_the_pod_and_every_other_is_refused(
    handover: Handover,
) -> None:
    """All twelve updates of the table; the pod is one and the same."""
    running = handover.print()
    assert len(running[1]) == 1
    assert handover.password() == PASSWORD
    assert handover.objects.get("baremetalhost", HOST)["spec"]["online"]

    gate = "machine-api"
    handover.refused(C, "UpgradeableFalse", gate)
    handover.refused(D, "UpgradeableFalse", gate)
    handover.move(B, "machine-api")

    before = handover.written()
    handover.move(C, "baremetal")
    assert handover.print() == running
    after = handover.written()
    # The claim, and the apply that gives up what the server had set for the old owner.
    assert after == {**before, "baremetal": before["baremetal"] + 2}
    handover.wait({"Available": "StandingDown"}, "machine-api")
    handover.refused(A, "NotReachable", "4.6.1")
    for operator in ACCOUNTS:
        assert "process_cpu_seconds_total" in handover.metrics(operator)

    back_to_b(handover)
    assert handover.print() == running

    before = handover.written()
    handover.move(D, "baremetal")
    handover.wait_running()
    assert handover.print() == running
    after = handover.written()
    assert after["machine-api"] == before["machine-api"]
    assert after["baremetal"] - before["baremetal"] in (1, 2)
    handover.refused(A, "NotReachable", "4.6.1")
    for version in (C, D):  # the same owner, which has nothing to write
        handover.move(version, "baremetal")
        assert handover.version() == version
    assert handover.written() == after
    assert handover.print() == running

    back_to_b(handover)
    handover.move(A, "machine-api")
    handover.wait({"Upgradeable": "Metal3NotGated"}, "machine-api")
    handover.wait_running("machine-api")
    assert handover.print() == running
    assert handover.password() == PASSWORD
    # Their pods' logs are among those of the node.
    handover.assert_the_password_is_in_no_output()


def back_to_b(handover: Handover) -> None:
    """The baremetal operator is in no manifest of B, and runs on until somebody removes it."""
    before = handover.written()
    handover.move(B, "baremetal")
    handover.remove_baremetal()
    eventually(lambda: handover.annotations() == [MACHINE_API_OWNS], "taken back", 60)
    handover.wait_running("machine-api")
    after = handover.written()
    assert after["baremetal"] == before["baremetal"]
    # The claim, and an apply if the server had set something for the old owner.
    assert after["machine-api"] - before["machine-api"] in (1, 2)
