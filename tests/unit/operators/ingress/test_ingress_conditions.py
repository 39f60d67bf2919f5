"""The conditions of an IngressController, with a clock that the test sets."""

from datetime import timedelta
from typing import Any

import pytest
from tests.ingress_controllers import (
    NOW,
    deployment,
    ingress_controller,
    observed,
    pod,
    to_container,
    typed,
)

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import IngressControllerStatus, OperatorCondition
from quarterdeck.operators.ingress.access_logging import access_logging_ready
from quarterdeck.operators.ingress.admission import Admission
from quarterdeck.operators.ingress.report import report
from quarterdeck.operators.ingress.settings import Settings
from quarterdeck.operators.ingress.status import desired_status, is_refused_anew, refused_status
from quarterdeck.status import find_condition

SETTINGS = Settings()
CRASHING = pod(
    "router-1",
    containerStatuses=[
        {"name": "router", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back"}}}
    ],
)
UNSCHEDULED = pod(
    "router-2",
    conditions=[{"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}],
)
STARTING = pod(
    "router-3",
    containerStatuses=[
        {"name": "router", "state": {"waiting": {"reason": "ContainerCreating"}}},
        {"name": "logs", "ready": False, "state": {"running": {}}},
    ],
)


def after(seconds: float, **found: Any) -> tuple[IngressControllerStatus, float | None]:
    """The status when this was seen for so long, and the seconds until it changes by itself."""
    first = desired_status(observed(**found), SETTINGS, NOW).status
    now = NOW + timedelta(seconds=seconds)
    dated = desired_status(observed(status=first, **found), SETTINGS, now)
    if dated.valid_until is None:
        return dated.status, None
    return dated.status, (dated.valid_until - now).total_seconds()


def condition(status: IngressControllerStatus, type_: str) -> OperatorCondition:
    found = find_condition(status.conditions, type_)
    assert found is not None
    return found


def test_a_router_with_all_its_pods_is_well() -> None:
    status, left = after(0)
    statuses = {one.type: one.status for one in status.conditions}
    assert statuses == {
        "Admitted": "True",
        "PodsRunning": "True",
        "ConfigurationAccepted": "True",
        "DeploymentReplicasMinAvailable": "True",
        "DeploymentReplicasAllAvailable": "True",
        "Available": "True",
        "Progressing": "False",
        "Degraded": "False",
    }
    assert left is None
    assert status.available_replicas == 2


def test_a_refused_configuration_is_told_and_degrades_after_its_grace_period() -> None:
    refusing = [
        pod(
            f"router-{number}",
            conditions=[
                {
                    "type": "quarterdeck.dev/ConfigurationAccepted",
                    "status": "False",
                    "reason": "Refused",
                    "message": "line 7: unknown keyword" + "x" * 5000,
                }
            ],
        )
        for number in range(5)
    ]
    status, left = after(29, pods=refusing)
    told = condition(status, "ConfigurationAccepted")
    assert (told.status, told.reason) == ("False", "Refused")
    assert told.message.startswith("pod router-0: line 7: unknown keyword")
    assert told.message.endswith("and 2 more")
    assert len(told.message) < 2000
    assert condition(status, "Degraded").status == "False"
    assert left == 1
    status, _ = after(30, pods=refusing)
    assert condition(status, "Degraded").reason == "Refused"
    accepted = pod(
        "router-1",
        conditions=[{"type": "quarterdeck.dev/ConfigurationAccepted", "status": "True"}],
    )
    status, _ = after(30, pods=[accepted])
    assert condition(status, "ConfigurationAccepted").status == "True"


def test_the_same_observation_gives_the_same_status() -> None:
    first = desired_status(observed(), SETTINGS, NOW).status
    later = NOW + timedelta(hours=3)
    assert desired_status(observed(status=first), SETTINGS, later).status == first


@pytest.mark.parametrize(
    ("found", "grace", "reason"),
    [
        pytest.param({"pods": (CRASHING,)}, 30, "PodsFailing", id="a crash-looping pod"),
        pytest.param({"pods": (UNSCHEDULED,)}, 30, "PodsFailing", id="a pod without a node"),
        pytest.param({"deployment": deployment(0)}, 60, "TooFewReplicas", id="too few replicas"),
        pytest.param(
            {"deployment": deployment(7, wanted=8)}, 3600, "ReplicasMissing", id="not all replicas"
        ),
    ],
)
def test_degraded_comes_with_the_end_of_the_grace_period(
    found: dict[str, Any], grace: int, reason: str
) -> None:
    for seconds in (0, grace - 1):
        status, left = after(seconds, **found)
        assert condition(status, "Degraded").status == "False"
        assert left == grace - seconds
    status, _ = after(grace, **found)
    degraded = condition(status, "Degraded")
    assert (degraded.status, degraded.reason) == ("True", reason)
    assert degraded.message


def test_a_slow_pod_is_no_failing_pod() -> None:
    status, left = after(3600, pods=(STARTING,))
    assert condition(status, "PodsRunning").status == "True"
    assert (condition(status, "Degraded").status, left) == ("False", None)


def test_a_new_leader_continues_the_grace_period() -> None:
    """It begins with the transition time in the status, not with the process."""
    first = desired_status(observed(pods=(CRASHING,)), SETTINGS, NOW).status
    for seconds, degraded in ((29, "False"), (30, "True")):
        now = NOW + timedelta(seconds=seconds)
        found = desired_status(observed(pods=(CRASHING,), status=first), SETTINGS, now).status
        assert condition(found, "Degraded").status == degraded


def test_the_words_of_a_failing_pod_are_in_the_condition() -> None:
    status, _ = after(30, pods=(CRASHING, UNSCHEDULED))
    message = condition(status, "Degraded").message
    assert "pod router-1: container router: CrashLoopBackOff: back" in message
    assert "pod router-2: no node takes it: 0/1 nodes are available" in message


@pytest.mark.parametrize(
    ("live", "progressing", "available"),
    [
        pytest.param(None, "True", "False", id="no Deployment yet"),
        pytest.param(deployment(0, rolled_out=False), "True", "False", id="first pods start"),
        pytest.param(deployment(1), "False", "True", id="a pod was lost after the roll-out"),
        pytest.param(
            deployment(2, updated=1, rolled_out=False), "True", "True", id="pods are replaced"
        ),
        pytest.param(deployment(0, wanted=0), "False", "False", id="no replicas are wanted"),
    ],
)
def test_progressing_and_available(live: Object | None, progressing: str, available: str) -> None:
    status, _ = after(0, deployment=live)
    assert condition(status, "Progressing").status == progressing
    assert condition(status, "Available").status == available


def test_a_stuck_roll_out_is_no_progress() -> None:
    live = deployment(0, rolled_out=False)
    live["status"]["conditions"][1] |= {"status": "False", "reason": "ProgressDeadlineExceeded"}
    status, _ = after(0, deployment=live)
    found = condition(status, "Progressing")
    assert (found.status, found.reason) == ("False", "RolloutStuck")
    assert "ProgressDeadlineExceeded" in found.message
    assert not report([observed(status=status).controller], SETTINGS).at_release_version


def test_a_load_balancer_without_an_address_is_progressing() -> None:
    obj = ingress_controller(endpointPublishingStrategy={"type": "LoadBalancerService"})
    waiting, _ = after(0, obj=obj, service={"status": {"loadBalancer": {}}})
    assert condition(waiting, "Progressing").reason == "LoadBalancerPending"
    service = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    ready, _ = after(0, obj=obj, service=service)
    assert condition(ready, "Progressing").status == "False"


def test_a_refused_spec_is_degraded_at_once_and_announced_once() -> None:
    refused = Admission(False, "InvalidLogFormat", "character 5")
    status, _ = after(0, admission=refused)
    assert condition(status, "Admitted").reason == "InvalidLogFormat"
    assert condition(status, "Degraded").status == "True"
    assert condition(status, "Available").status == "True"
    assert is_refused_anew(observed(admission=refused))
    assert not is_refused_anew(observed(admission=refused, status=status))


VARIABLES = {"ROUTER_SYSLOG_ADDRESS": "/var/lib/rsyslog/rsyslog.sock", "ROUTER_SYSLOG_FORMAT": "$$"}
LOGGING = deployment(env=VARIABLES)


def reporting(
    name: str,
    status: str,
    reason: str = "Arrives",
    message: str = "",
    ready: str = "True",
    **variables: str,
) -> Object:
    """A pod whose router reports on its access logs."""
    report_ = {
        "type": "quarterdeck.dev/AccessLoggingReady",
        "status": status,
        "reason": reason,
        "message": message,
    }
    conditions = [{"type": "Ready", "status": ready}, report_]
    return pod(name, VARIABLES | variables, conditions=conditions)


@pytest.mark.parametrize(
    ("pods", "status", "words"),
    [
        pytest.param([], "Unknown", "no pod logs like this yet", id="no pods"),
        pytest.param(
            [pod("a", VARIABLES)],
            "Unknown",
            "a",
            id="a pod that has not reported",
        ),
        pytest.param([reporting("a", "True")], "True", "", id="all arrive"),
        pytest.param(
            [reporting("a", "True", message="3 lines were lost")],
            "True",
            "a: 3 lines were lost",
            id="loss is shown",
        ),
        pytest.param(
            [reporting("a", "True"), reporting("b", "False", "SocketMissing", "no socket")],
            "False",
            "b: no socket",
            id="one pod is enough",
        ),
        pytest.param(
            [
                reporting("new", "True"),
                reporting("old", "False", ROUTER_SYSLOG_ADDRESS="192.0.2.1:514"),
            ],
            "True",
            "",
            id="pods of an earlier template do not count",
        ),
        pytest.param(
            [reporting("a", "True"), reporting("killed", "True", ready="False")],
            "Unknown",
            "killed",
            id="a router that was killed said so before",
        ),
        pytest.param(
            [reporting("a", "False", "SocketMissing", "no socket", ready="False")],
            "False",
            "a: no socket",
            id="without its sidecar a pod is not ready either",
        ),
    ],
)
def test_access_logging_ready(pods: list[Object], status: str, words: str) -> None:
    found = access_logging_ready(LOGGING, pods)
    assert found is not None
    assert found.status == status
    assert words in found.message


def test_access_logging_ready_is_absent_when_logging_is_off() -> None:
    assert access_logging_ready(deployment(), [reporting("a", "True")]) is None
    on = desired_status(observed(deployment=LOGGING), SETTINGS, NOW).status
    assert find_condition(on.conditions, "AccessLoggingReady") is not None
    off = desired_status(observed(status=on), SETTINGS, NOW).status
    assert find_condition(off.conditions, "AccessLoggingReady") is None


def test_the_reason_of_a_router_is_passed_on() -> None:
    found = access_logging_ready(LOGGING, [reporting("b", "False", "SocketMissing", "x" * 9999)])
    assert found is not None
    assert found.reason == "SocketMissing"
    assert len(found.message) < 1000


def as_reported(**found: Any) -> dict[str, str]:
    """The conditions of the ClusterOperator when `default` is like this."""
    status, _ = after(3600, **found)
    controller = observed(status=status).controller
    return {one.type: one.status for one in report([controller], SETTINGS).conditions}


def test_the_cluster_operator_follows_default() -> None:
    assert as_reported()["Available"] == "True"
    assert as_reported(deployment=deployment(0))["Available"] == "False"
    assert as_reported(deployment=deployment(0))["Degraded"] == "True"


def test_another_ingress_controller_only_counts_for_progressing() -> None:
    well, _ = after(0)
    bad, _ = after(3600, deployment=deployment(0, rolled_out=False))
    default = observed(status=well).controller
    other = observed(ingress_controller("other"), status=bad).controller
    found = report([default, other], SETTINGS)
    statuses = {one.type: one.status for one in found.conditions}
    assert (statuses["Available"], statuses["Degraded"]) == ("True", "False")
    assert statuses["Progressing"] == "True"
    assert (found.at_release_version, found.versions) == (False, ())


def test_without_default_the_cluster_operator_is_well_and_says_so() -> None:
    found = report([], SETTINGS)
    (available,) = (one for one in found.conditions if one.type == "Available")
    assert (available.status, available.reason) == ("True", "NoDefaultIngressController")
    assert found.at_release_version
    assert [one.name for one in found.versions] == ["ingress-controller"]


def test_a_new_ingress_controller_is_not_at_the_release_yet() -> None:
    obj = ingress_controller(logging=to_container())
    obj["metadata"]["generation"] = 1
    assert not report([typed(obj)], SETTINGS).at_release_version


def test_what_the_api_server_refuses_is_degraded_and_the_rest_stays() -> None:
    """The pods that run are not touched by a spec that is refused."""
    well, _ = after(0)
    found = refused_status(
        observed(status=well).controller, "Invalid", "tolerations[0]: change it", NOW
    )
    assert condition(found, "Admitted").message == "tolerations[0]: change it"
    assert condition(found, "Degraded").message == "Admitted: tolerations[0]: change it"
    assert condition(found, "Degraded").status == "True"
    assert condition(found, "Available") == condition(well, "Available")
    again = refused_status(
        observed(status=found).controller, "Invalid", "tolerations[0]: change it", NOW
    )
    assert again == found
