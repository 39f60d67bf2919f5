"""IngressControllers that nobody should write: long names, huge values, fights over ports.

Each is refused in words that name the field, or waits with a reason; the others go on.
"""

import pytest
from tests.ingress_controllers import HOME, to_container
from tests.integration.operators.ingress.routers import Routers, on_host

from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.waiting import eventually, until


def has_event(routers: Routers, name: str, reason: str) -> bool:
    """Whether there is an event about an IngressController with this reason."""
    events = routers.objects.list("events.events.k8s.io", namespace=HOME)
    return any(one["reason"] == reason and one["regarding"]["name"] == name for one in events)


def wait_deleted(routers: Routers, name: str) -> None:
    """Delete an IngressController, and wait until nothing is left of it."""
    routers.delete(name)
    eventually(lambda: routers.is_gone(name), "nothing is left")


@pytest.mark.parametrize("name", ["n" * 253, "a.b", "n" * 48])
def test_a_name_that_cannot_be_part_of_others_is_refused_and_can_be_deleted(
    routers: Routers, operator: OperatorProcess, name: str
) -> None:
    """A name may have 253 characters and dots, but a label and a Service only 63 and none."""
    routers.apply(name, logging=to_container())
    found = routers.wait_condition(name, "Admitted", "False", "InvalidSpec")
    assert found["message"].startswith(f"metadata.name: '{name}': use at most 47")
    eventually(lambda: has_event(routers, name, "InvalidSpec"), "an event")
    routers.wait_fixed_point(operator, name)
    routers.delete(name)
    eventually(
        lambda: routers.objects.find("ingresscontroller", name, namespace=HOME) is None, "it goes"
    )


def test_a_format_with_which_no_process_starts_is_refused_and_the_pods_stay(
    routers: Routers, operator: OperatorProcess
) -> None:
    routers.apply("huge", logging=to_container(httpLogFormat="%ci ok"))
    routers.wait_settled("huge")
    before = routers.deployment("huge")
    for logging, field in (
        (to_container(httpLogFormat="%ci " + "a" * 200_000), "httpLogFormat"),
        (
            to_container(
                httpCaptureHeaders={
                    "response": [{"name": f"X-{n:06}", "maxLength": 9} for n in range(15_000)]
                }
            ),
            "httpCaptureHeaders.response",
        ),
    ):
        routers.apply("huge", logging=logging)
        found = routers.wait_condition("huge", "Admitted", "False", "InvalidSpec")
        assert f"spec.logging.access.{field}: " in found["message"]
        assert len(found["message"]) < 500
    after = routers.deployment("huge")
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    routers.apply("huge", logging=to_container(httpLogFormat="%ci " + "a" * 100_000))
    routers.wait_condition("huge", "Admitted", "True")
    routers.wait_rolled_out("huge")


def test_what_the_api_server_refuses_is_told_and_then_mended(
    routers: Routers, operator: OperatorProcess
) -> None:
    """Nobody but the API server knows all its rules, and its words name the field."""
    bad = {"tolerations": [{"key": "a", "operator": "Sideways"}]}
    routers.apply("told", nodePlacement=bad)
    found = routers.wait_condition("told", "Admitted", "False")
    assert "tolerations[0].operator" in found["message"]
    assert "Sideways" in found["message"]
    routers.wait_condition("told", "Degraded", "True")
    assert routers.deployment("told") is None
    routers.apply("beside")
    routers.wait_settled("beside")
    routers.apply("told", nodePlacement={"tolerations": [{"key": "a", "operator": "Exists"}]})
    routers.wait_settled("told")
    routers.wait_condition("told", "Admitted", "True")
    routers.wait_condition("told", "Degraded", "False")


def test_two_that_want_the_same_ports_of_a_node_do_not_disturb_each_other(
    routers: Routers, operator: OperatorProcess
) -> None:
    """Pods of the second one wait for a node, and say so; they run when the first one is gone."""
    same = on_host([18080, 18443, 11936])
    routers.apply("first", endpointPublishingStrategy=same)
    routers.wait_settled("first")
    (pod,) = routers.pods("first")
    routers.apply("second", endpointPublishingStrategy=same)
    waiting = routers.wait_condition("second", "PodsRunning", "False", "PodsFailing")
    assert "no node takes it" in waiting["message"]
    assert "free ports" in waiting["message"]
    routers.wait_condition("second", "Degraded", "True")
    routers.wait_condition("first", "Available", "True")
    assert [one["metadata"]["uid"] for one in routers.pods("first")] == [pod["metadata"]["uid"]]
    routers.wait_fixed_point(operator, "first")
    wait_deleted(routers, "first")
    routers.wait_settled("second")
    routers.wait_condition("second", "Degraded", "False")


def test_one_replica_on_the_hosts_network_is_replaced_in_place(
    routers: Routers, operator: OperatorProcess
) -> None:
    """No second pod can have its ports meanwhile: the old one has to go first."""
    strategy = on_host([28080, 28443, 21936])
    routers.apply("alone", endpointPublishingStrategy=strategy)
    routers.wait_settled("alone")
    before = routers.replica_sets("alone")
    routers.apply("alone", endpointPublishingStrategy=strategy, logging=to_container())
    until(lambda: routers.replica_sets("alone"), lambda now: now and now != before, "a new pod")
    routers.wait_rolled_out("alone")
