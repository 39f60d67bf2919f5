"""The handover between two processes: one write, no restart, never two writers."""

import signal
from typing import NamedTuple

import pytest
from tests.integration.operators.baremetal.conftest import B, Proxied
from tests.integration.operators.baremetal.metal import (
    Metal,
    intrusions,
    owned_by,
    turns,
    user,
)

from quarterdeck.metal3.names import BAREMETAL_OWNS, MACHINE_API_OWNS
from quarterdeck.testing.audit import AuditedRequest
from quarterdeck.testing.fault_proxy import Answer, Hold
from quarterdeck.testing.operator_process import OperatorProcess, StartOperator
from quarterdeck.testing.waiting import eventually


def test_a_claim_is_one_write_and_the_way_back_another(
    metal: Metal, managed: OperatorProcess, run_baremetal: StartOperator
) -> None:
    """Both run all the time; the pod is the same one at the end.

    After the claim comes one apply, which gives up the ownership of fields that the server had set
    for the old owner, and changes nothing else.
    """
    running = metal.print()
    before = {name: len(metal.deployment_writes(name)) for name in ("machine-api", "baremetal")}

    def written() -> tuple[int, int]:
        found = {name: len(metal.deployment_writes(name)) - before[name] for name in before}
        return found["machine-api"], found["baremetal"]

    baremetal = run_baremetal()
    metal.wait_running()
    assert metal.is_owned_by_baremetal()
    assert metal.print() == running
    assert metal.owners() == {"quarterdeck-baremetal"}
    metal.wait({"Available": "StandingDown"}, "machine-api")
    assert len(baremetal.lines("claimed")) == 1
    eventually(lambda: written() == (0, 2), "the claim and the apply are logged")
    # Both are asked to look again, and neither writes.
    metal.objects.patch("deployment", "metal3", {"metadata": {"annotations": {"a": "b"}}})
    metal.challenge()
    metal.challenge("machine-api")
    assert written() == (0, 2)

    # The administrator removes the baremetal operator: its process, then its ClusterOperator.
    baremetal.kill()
    assert metal.is_owned_by_baremetal()
    metal.objects.delete("clusteroperator", "baremetal")
    eventually(lambda: metal.annotations() == [MACHINE_API_OWNS], "taken back")
    metal.wait_running("machine-api")
    assert metal.print() == running
    assert metal.owners() == {"quarterdeck-machine-api"}
    assert len(managed.lines("claimed")) == 1
    metal.challenge("machine-api")
    theirs, ours = written()
    assert (theirs in (1, 2), ours) == (True, 2)
    reasons = [one["reason"] for one in metal.objects.list("events.events.k8s.io")]
    assert reasons.count("Claimed") >= 2


def test_what_the_old_owner_applied_and_the_new_one_does_not_want_goes(
    metal: Metal, managed: OperatorProcess, run_baremetal: StartOperator
) -> None:
    """Also with other images: then there is one roll-out, after the claim, and an event."""
    managed.send(signal.SIGTERM)
    managed.wait()
    before = metal.print()
    metal.leave_a_label("machine-api")
    images = metal.objects.get("configmap", "cluster-baremetal-operator-images")
    text = images["data"]["images.json"].replace('"ironic"', '"ironic:2"')
    metal.objects.patch(
        "configmap", "cluster-baremetal-operator-images", {"data": {"images.json": text}}
    )
    run_baremetal()
    eventually(lambda: metal.is_owned_by_baremetal(), "claimed")
    eventually(lambda: not metal.has_left_label(), "it is gone")
    metal.wait_running()
    after = metal.print()
    assert after[0] != before[0]
    assert metal.deployment()["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    events = metal.objects.list("events.events.k8s.io")
    assert "PodTemplateChanged" in {one["reason"] for one in events}


def test_removed_in_the_wrong_order_there_are_never_two_writers(
    metal: Metal, managed: OperatorProcess, run_baremetal: StartOperator
) -> None:
    """The ClusterOperator first: its operator brings it back, and claims again.

    Two writers are a write of one operator, other than a claim, to what the other one has. The
    audit log shows all writes of both, and the server each version that came of them.
    """
    running = metal.print()
    first = metal.deployment()["metadata"]["resourceVersion"]
    last_before = metal.writes_in_order("")[-1]
    baremetal = run_baremetal()
    metal.wait_running()
    for _ in range(5):
        metal.objects.delete("clusteroperator", "baremetal")
        eventually(lambda: metal.objects.find("clusteroperator", "baremetal"), "it is back")
        eventually(lambda: metal.is_owned_by_baremetal(), "claimed again")
        assert metal.print() == running
    baremetal.kill()
    metal.objects.delete("clusteroperator", "baremetal")
    eventually(lambda: metal.annotations() == [MACHINE_API_OWNS], "taken back")
    metal.wait_running("machine-api")
    metal.challenge("machine-api")
    assert metal.print() == running

    versions = [owned_by(one) for one in metal.versions_since(first)]
    assert {len(owners) for owners in versions} == {1}
    owners = turns([MACHINE_API_OWNS, *(name for (name,) in versions)])
    assert len(owners) >= 3, "it went to the baremetal operator, and back"

    def writes() -> list[AuditedRequest]:
        return [last_before, *metal.writes_in_order(last_before.received)]

    def writers() -> list[str]:
        annotations = {user("machine-api"): MACHINE_API_OWNS, user("baremetal"): BAREMETAL_OWNS}
        return turns(annotations[one.user] for one in writes())

    # A line is written when its request ends, a moment after the version that came of it.
    eventually(lambda: writers() == owners, f"the writers in the audit log are {owners}")
    assert intrusions(writes()) == []


def test_a_claim_that_was_overtaken_is_refused_and_tried_again(
    metal: Metal, managed: OperatorProcess, run_baremetal: StartOperator, proxied: Proxied
) -> None:
    """The machine API operator writes between the read and the claim: nothing of it is lost."""
    proxy, through_proxy = proxied("baremetal")
    hold = Hold()
    proxy.inject(hold, verb="patch", resource="deployments")
    run_baremetal(through_proxy)
    assert hold.held.wait(60)
    metal.provision(provisioningIP="172.30.20.4")
    before = metal.deployment()["metadata"]["generation"]

    def rolled_out() -> bool:
        return bool(metal.deployment()["metadata"]["generation"] > before) or (
            "172.30.20.4/24" in str(metal.deployment()["spec"]["template"])
        )

    eventually(rolled_out, "the machine API operator applies the change")
    changed = metal.print()[0]
    hold.let_go.set()
    metal.wait_running()
    assert metal.is_owned_by_baremetal()
    assert metal.print()[0] == changed
    refused = [one for one in metal.writes("baremetal") if one.code == 409]
    assert [one.resource for one in refused][-1:] == ["deployments"]


class Late(NamedTuple):
    """A request of the machine API operator between its decision and its write."""

    resource: str
    exists: bool
    """Whether metal3 runs already."""


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(Late("deployments", exists=False), id="it creates the Deployment"),
        pytest.param(Late("secrets", exists=True), id="it creates the password before it applies"),
    ],
)
def test_a_write_that_was_overtaken_by_the_other_operator_is_refused(
    metal: Metal,
    run_machine_api: StartOperator,
    run_baremetal: StartOperator,
    proxied: Proxied,
    late: Late,
) -> None:
    """The decision was about another Deployment, or about none, even if the cache has the new one.

    Both operators name the same Provisioning as the owner, so nothing but the version tells them
    apart.
    """
    proxy, through_proxy = proxied("machine-api")
    metal.set_platform("BareMetal")
    hold = Hold()
    if late.exists:
        metal.provision()
        run_machine_api(B, through_proxy)
        metal.wait_running("machine-api")
        proxy.inject(hold, verb="create", resource=late.resource)
        metal.objects.delete("secret", "metal3-mariadb-password")
    else:
        proxy.inject(hold, verb="create", resource=late.resource)
        metal.provision()
        run_machine_api(B, through_proxy)
    assert hold.held.wait(60)
    before = len(metal.deployment_writes("machine-api"))
    run_baremetal()
    metal.wait_running()
    assert metal.is_owned_by_baremetal()
    running = metal.print()
    hold.let_go.set()
    metal.wait({"Available": "StandingDown"}, "machine-api")
    metal.challenge("machine-api")
    assert len(metal.deployment_writes("machine-api")) == before
    assert metal.is_owned_by_baremetal()
    assert metal.print() == running


def test_a_read_error_stops_it_and_is_reported_as_a_refused_write_is(
    metal: Metal, run_machine_api: StartOperator, proxied: Proxied
) -> None:
    """Whether the baremetal operator is there is not known: nothing is created.

    A "not found" counts only if it is about that object, and not about its resource type.
    """
    proxy, through_proxy = proxied("machine-api")
    metal.set_platform("BareMetal")
    metal.provision()
    wanted = {"verb": "get", "resource": "clusteroperators"}
    # First the server's own error, and then an answer that is not about the object.
    proxy.inject(Answer(500, reason="InternalError"), verb="get", resource="clusteroperators")
    no_type = Answer(404, reason="NotFound")
    proxy.inject(no_type, verb="get", resource="clusteroperators", times=None)
    run_machine_api(B, through_proxy, "--watch-grace-period=1")
    metal.wait({"Degraded": "CannotRead"}, "machine-api")
    metal.challenge("machine-api")
    eventually(lambda: proxy.count(**wanted) >= 3, "it has tried again")
    assert metal.conditions("machine-api")["Degraded"][1] == "CannotRead"
    assert metal.deployment() is None
    proxy.clear()
    metal.wait_running("machine-api")

    # A write that is refused is reported too.
    proxy.inject(Answer(403, reason="Forbidden"), verb="patch", resource="deployments", times=None)
    metal.provision(provisioningIP="172.30.20.4")
    metal.wait({"Degraded": "SyncingFailed"}, "machine-api")
    proxy.clear()
    metal.wait_running("machine-api")


def test_the_unsafe_update_goes_wrong_as_the_model_says(
    metal: Metal, run_machine_api: StartOperator, run_baremetal: StartOperator
) -> None:
    """A machine API operator of build A and the baremetal operator write in turn, without end."""
    metal.set_platform("BareMetal")
    metal.provision()
    run_machine_api("--metal3-build=A")
    metal.wait_running("machine-api")
    metal.wait({"Upgradeable": "Metal3NotGated"}, "machine-api")
    before = {name: len(metal.deployment_writes(name)) for name in ("machine-api", "baremetal")}
    began = metal.writes_in_order("")[-1].received
    run_baremetal()

    def both_write() -> bool:
        return all(len(metal.deployment_writes(name)) - before[name] >= 2 for name in before)

    eventually(both_write, "both write again and again")
    assert intrusions(metal.writes_in_order(began)) != []
