"""The baremetal operator on a real API server, under its own account."""

import re
import threading
import time
from pathlib import Path

from click.testing import CliRunner
from tests.integration.operators.baremetal.conftest import Proxied
from tests.integration.operators.baremetal.metal import Metal

from quarterdeck.api.definition import definition
from quarterdeck.api.metal3_v1alpha1 import BARE_METAL_HOSTS, PROVISIONINGS
from quarterdeck.cli.main import cli
from quarterdeck.localcluster.definitions import install_definitions
from quarterdeck.testing.fault_proxy import FaultProxy
from quarterdeck.testing.operator_process import (
    OperatorProcess,
    StartOperator,
    own_account,
)
from quarterdeck.testing.waiting import eventually

DISABLED = {
    "Disabled": ("True", "UnsupportedPlatform", "Nothing to do on this Platform"),
    "Available": ("True", "UnsupportedPlatform", "Nothing to do on this Platform"),
    "Progressing": ("False", "AsExpected", ""),
    "Degraded": ("False", "AsExpected", ""),
    "Upgradeable": ("True", "AsExpected", ""),
}


def watched(proxy: FaultProxy) -> set[str]:
    """The resources that the operator has watched so far."""
    return {one.resource for one in proxy.seen if one.verb == "watch"}


def test_it_is_disabled_on_other_platforms_and_wakes_up(
    metal: Metal, run_baremetal: StartOperator, proxied: Proxied, kubeconfig: Path
) -> None:
    """Disabled it watches its switch and its own report, and writes nothing but the report."""
    proxy, through_proxy = proxied("baremetal")
    before = len(metal.writes("baremetal"))
    metal.set_platform("None")
    metal.provision()
    run_baremetal(through_proxy)
    metal.wait({"Disabled": "True"})
    assert metal.conditions() == DISABLED
    metal.challenge()
    eventually(lambda: len(metal.writes("baremetal")[before:]) >= 3, "the writes are logged")
    made = {one.resource for one in metal.writes("baremetal")[before:]}
    assert made <= {"clusteroperators", "clusteroperators/status"}
    assert watched(proxy) == {"clusteroperators", "infrastructures"}
    assert metal.deployment() is None

    shown = CliRunner().invoke(cli, ["operators", f"--kubeconfig={kubeconfig}"], color=True)
    (line,) = (one for one in shown.output.splitlines() if "baremetal" in one)
    assert line.startswith("\x1b[90m")  # grey
    assert "(disabled)" in line
    shown = CliRunner().invoke(cli, ["operators", "baremetal", f"--kubeconfig={kubeconfig}"])
    assert shown.exit_code == 0, shown.output

    metal.set_platform("BareMetal")
    metal.wait_running()
    assert metal.conditions()["Disabled"][0] == "False"
    assert "provisionings" in watched(proxy)
    running = metal.print()
    metal.set_platform("None")
    metal.wait({"Disabled": "True"})
    proxy.forget()
    proxy.cut_now()
    own = {"clusteroperators", "infrastructures"}
    eventually(lambda: watched(proxy) == own, "its own two watches are opened again")
    assert metal.print() == running  # nobody's database is lost by a wrong platform


def test_the_platform_changes_ten_times_under_load(
    metal: Metal, run_baremetal: StartOperator
) -> None:
    """While the Provisioning changes all the time; the end is as without all that."""
    metal.set_platform("None")
    metal.provision()
    operator = run_baremetal()
    metal.wait({"Disabled": "True"})
    over = threading.Event()

    def load() -> None:
        other = Metal(metal.plane)
        number = 0
        while not over.is_set():
            number += 1
            other.provision(provisioningIP=f"172.30.20.{3 + number % 5}")
            time.sleep(0.02)

    loader = threading.Thread(target=load)
    loader.start()
    try:
        for _ in range(10):
            metal.set_platform("BareMetal")
            metal.wait({"Disabled": "False"})
            metal.set_platform("None")
            metal.wait({"Disabled": "True"})
    finally:
        over.set()
        loader.join()
    metal.challenge()
    metal.provision()
    metal.set_platform("BareMetal")
    metal.wait_running()
    (container,) = (
        one
        for one in metal.deployment()["spec"]["template"]["spec"]["containers"]
        if one["name"] == "metal3-httpd"
    )
    assert {"name": "PROVISIONING_IP", "value": "172.30.20.3/24"} in container["env"]
    assert operator.get("/readyz")[0] == 200


def test_without_an_infrastructure_it_is_degraded_until_there_is_one(
    metal: Metal, run_baremetal: StartOperator
) -> None:
    operator = run_baremetal()
    metal.wait({"Degraded": "UnknownPlatform"})
    assert "Infrastructure cluster: not found" in metal.conditions()["Degraded"][2]
    metal.challenge()
    metal.set_platform("")
    metal.wait({"Degraded": "UnknownPlatform"})
    metal.set_platform("None")
    metal.wait({"Degraded": "False", "Disabled": "True"})
    metal.objects.delete("infrastructure", "cluster")
    metal.wait({"Degraded": "UnknownPlatform"})
    assert operator.get("/readyz")[0] == 200


def test_its_life_on_bare_metal(metal: Metal, tmp_path: Path) -> None:
    """From no Provisioning to a running metal3, through a bad configuration, to its end."""
    started: list[OperatorProcess] = []

    def start(operator: str, option: str) -> OperatorProcess:
        account = own_account(metal.plane, operator)
        arguments = [f"--operator={operator}", f"--kubeconfig={account}", option]
        started.append(OperatorProcess(arguments, tmp_path / operator, verbosity=10))
        return started[-1]

    try:
        baremetal = start("baremetal", "--deploy-timeout=2s")
        live(metal)
        # The other operator uses the same password, and hands metal3 over with it.
        baremetal.kill()
        metal.objects.delete("clusteroperator", "baremetal")
        password = metal.password()
        start("machine-api", "--metal3-build=B")
        metal.provision()
        metal.wait_running("machine-api")
        logs = [one.log for one in started]
        baremetal = start("baremetal", "--deploy-timeout=2s")
        eventually(metal.is_owned_by_baremetal, "claimed")
        metal.wait_running()
        assert metal.password() == password
        assert all(log.stat().st_size > 10_000 for log in logs)  # bodies too
        shown = [
            CliRunner().invoke(cli, [*words.split(), f"--kubeconfig={metal.plane.kubeconfig}"])
            for words in ("handover status", "operators baremetal --output=yaml")
        ]
        for number, one in enumerate(shown):
            assert "metal3" in one.output
            (tmp_path / f"shown-{number}").write_text(one.output)
        metal.assert_the_password_is_in_no_output(*tmp_path.iterdir())
    finally:
        for process in started:
            process.kill()


def live(metal: Metal) -> None:
    metal.set_platform("BareMetal")
    metal.wait({"Available": "WaitingForProvisioningCR", "Progressing": "False"})
    metal.challenge()

    metal.provision()
    metal.wait_running()
    assert metal.conditions()["Progressing"][2] == "metal3 pod is running"
    password, running = metal.password(), metal.print()
    assert re.fullmatch("[A-Za-z0-9]{16}", password)
    (pod,) = metal.pods()
    assert pod["spec"]["nodeName"] == "simulated"
    assert len(pod["spec"]["containers"]) == 10
    assert pod["spec"]["priorityClassName"] == "system-node-critical"
    metal.challenge()
    settled = metal.objects.get("clusteroperator", "baremetal")
    related = {(one["resource"], one.get("name")) for one in settled["status"]["relatedObjects"]}
    assert related >= {
        ("namespaces", "openshift-machine-api"),
        ("provisionings", ""),
        ("baremetalhosts", ""),
        ("deployments", "metal3"),
    }

    # Bad input: what runs stays as it is.
    metal.provision(provisioningIP="10.0.0.1")
    metal.wait({"Degraded": "InvalidConfiguration"})
    seen = metal.conditions()
    assert (
        "spec.provisioningIP: '10.0.0.1': pick an address in 172.30.20.0/24" in seen["Degraded"][2]
    )
    assert seen["Progressing"][2] == "Unable to apply Provisioning CR: invalid configuration"
    assert metal.print() == running
    # The object itself says it too, and so does an event about it.
    fault = "spec.provisioningIP: '10.0.0.1': pick an address in 172.30.20.0/24"
    assert metal.told() == ("False", "InvalidConfiguration", fault, True)
    about = {
        (one["regarding"]["kind"], one["regarding"]["name"], one["reason"], one["note"])
        for one in metal.objects.list("events.events.k8s.io", namespace="default")
    }
    name = "provisioning-configuration"
    assert ("Provisioning", name, "InvalidConfiguration", fault) in about
    metal.challenge()
    metal.provision()
    metal.wait_running()
    assert metal.told() == ("True", "AsExpected", "", True)
    assert metal.print() == running

    # A container that crashes.
    metal.annotate_pods("crash-looping")
    metal.wait({"Degraded": "DeploymentCrashLooping", "Available": "False"})
    metal.challenge()
    metal.annotate_pods("ready")
    metal.wait_running()

    # A roll-out that cannot go on: no node takes the pod.
    metal.plane.kubectl("cordon", "simulated")
    try:
        metal.provision(provisioningNetwork="Unmanaged")
        metal.wait({"Degraded": "DeployTimedOut", "Progressing": "True"})
        metal.challenge()
    finally:
        metal.plane.kubectl("uncordon", "simulated")
    metal.wait_running()
    assert metal.print() != running
    assert metal.password() == password

    # Settled: nothing is written, whoever touches the objects.
    written = len(metal.writes("baremetal"))
    note = {"metadata": {"annotations": {"example.test/note": "seen"}}}
    metal.objects.patch("provisioning", "provisioning-configuration", note)
    metal.objects.patch("deployment", "metal3", note)
    metal.challenge()
    # The answer is logged a moment after it is seen.
    eventually(lambda: len(metal.writes("baremetal")) > written, "the answer is logged")
    made = [one.resource for one in metal.writes("baremetal")[written:]]
    assert set(made) == {"clusteroperators/status"}

    # With its Provisioning, metal3 goes; the password stays for the next one.
    metal.objects.delete("provisioning", "provisioning-configuration")
    eventually(lambda: metal.deployment() is None, "metal3 is deleted")
    metal.wait({"Available": "WaitingForProvisioningCR"})
    assert metal.password() == password


def test_the_machine_api_operator_is_available_before_the_kinds_are_there(
    without_kinds: None, metal: Metal, run_machine_api: StartOperator
) -> None:
    """A new cluster of release C: the kinds come with the baremetal operator, after this one."""
    metal.set_platform("BareMetal")
    operator = run_machine_api("--metal3-build=C")
    waiting = {"Available": "WaitingForProvisioningCR", "Degraded": "False"}
    metal.wait(waiting, "machine-api")
    assert operator.get("/readyz")[0] == 200
    later = [definition(PROVISIONINGS), definition(BARE_METAL_HOSTS)]
    install_definitions(metal.plane.requests(), later)
    metal.provision()
    metal.wait_running("machine-api")
