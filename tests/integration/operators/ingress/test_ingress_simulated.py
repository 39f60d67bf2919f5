"""The conditions of IngressControllers whose pods behave badly, on the node `simulated`.

The operator has short grace periods. What the delivered ones do is judged from the same objects,
with a clock that the test sets.
"""

from datetime import datetime, timedelta

from tests.ingress_controllers import typed
from tests.integration.operators.ingress.routers import Routers

from quarterdeck.operators.ingress.admission import ADMITTED
from quarterdeck.operators.ingress.observed import Observed
from quarterdeck.operators.ingress.settings import Settings
from quarterdeck.operators.ingress.status import desired_status
from quarterdeck.status import find_condition
from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.waiting import eventually, until


def begin(routers: Routers, name: str, behaviour: str) -> None:
    """An IngressController whose only pod behaves like this from its start."""
    routers.apply(name, replicas=0)
    eventually(lambda: routers.deployment(name), "its Deployment")
    routers.simulate(name, behaviour)
    routers.apply(name, replicas=1)


def degraded_after(routers: Routers, name: str, part: str, seconds: float) -> str:
    """Degraded by the delivered grace periods, so long after the part no longer held."""
    obj = routers.get(name)
    seen = Observed(
        controller=typed(obj),
        admission=ADMITTED,
        deployment=routers.deployment(name),
        pods=tuple(routers.pods(name)),
    )
    found = routers.condition(name, part)
    assert found is not None
    since = datetime.fromisoformat(found["lastTransitionTime"])
    status = desired_status(seen, Settings(), since + timedelta(seconds=seconds)).status
    judged = find_condition(status.conditions, "Degraded")
    assert judged is not None
    return judged.status


def test_a_ready_pod(routers: Routers, operator: OperatorProcess) -> None:
    routers.apply("ready")
    routers.wait_settled("ready")
    routers.wait_condition("ready", "Degraded", "False")
    assert degraded_after(routers, "ready", "DeploymentReplicasAllAvailable", 36_000) == "False"


def test_a_slow_pod_is_progressing_and_then_available(
    routers: Routers, operator: OperatorProcess
) -> None:
    begin(routers, "slow", "slow")
    routers.wait_condition("slow", "Progressing", "True", "RollingOut")
    routers.wait_condition("slow", "DeploymentReplicasMinAvailable", "False")
    assert degraded_after(routers, "slow", "DeploymentReplicasMinAvailable", 59) == "False"
    routers.wait_settled("slow")
    routers.wait_condition("slow", "Degraded", "False")


def test_a_crash_looping_pod_degrades_after_thirty_seconds(
    routers: Routers, operator: OperatorProcess
) -> None:
    begin(routers, "crash", "crash-looping")
    found = routers.wait_condition("crash", "PodsRunning", "False", "PodsFailing")
    assert "CrashLoopBackOff" in found["message"]
    assert degraded_after(routers, "crash", "PodsRunning", 29) == "False"
    assert degraded_after(routers, "crash", "PodsRunning", 30) == "True"
    routers.wait_condition("crash", "Degraded", "True")
    routers.wait_condition("crash", "Available", "False")
    # The restart count grows for ever; the status does not follow it.
    routers.wait_fixed_point(operator, "crash")


def test_a_pod_that_never_gets_ready_degrades_after_sixty_seconds(
    routers: Routers, operator: OperatorProcess
) -> None:
    begin(routers, "never", "never-ready")
    found = routers.wait_condition("never", "DeploymentReplicasMinAvailable", "False")
    assert "0 of 1 replicas are available" in found["message"]
    part = "DeploymentReplicasMinAvailable"
    assert degraded_after(routers, "never", part, 59) == "False"
    assert degraded_after(routers, "never", part, 60) == "True"
    degraded = routers.wait_condition("never", "Degraded", "True")
    assert "replicas are available" in degraded["message"]


def test_a_missing_replica_degrades_after_an_hour(
    routers: Routers, operator: OperatorProcess
) -> None:
    """Five replicas, of which a roll-out keeps four: the fifth never gets ready."""
    routers.apply("some", replicas=5)
    routers.wait_settled("some")
    routers.simulate("some", "never-ready")
    routers.wait_condition("some", "Progressing", "True")
    until(
        lambda: routers.condition("some", "DeploymentReplicasAllAvailable"),
        lambda found: found is not None and found["status"] == "False",
        "a replica is missing",
    )
    routers.wait_condition("some", "DeploymentReplicasMinAvailable", "True")
    part = "DeploymentReplicasAllAvailable"
    assert degraded_after(routers, "some", part, 3599) == "False"
    assert degraded_after(routers, "some", part, 3600) == "True"
    routers.wait_condition("some", "Degraded", "False")
