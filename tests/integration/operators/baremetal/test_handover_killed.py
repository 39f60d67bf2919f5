"""An operator that is killed with SIGKILL at a step of the handover; another one completes it.

The claim of the baremetal operator and the way back are tried in turn. Before each the old owner
has applied a field that the new one does not want, so each is two writes: the claim and an apply.
"""

import signal
from typing import NamedTuple

import pytest
from tests.integration.operators.baremetal.conftest import B, Proxied
from tests.integration.operators.baremetal.metal import Metal, Print

from quarterdeck.metal3.names import BAREMETAL_OWNS, MACHINE_API_OWNS
from quarterdeck.testing.fault_proxy import FaultProxy, Hold, Late
from quarterdeck.testing.operator_process import OperatorProcess, StartOperator
from quarterdeck.testing.waiting import eventually

ANSWERED_AFTER = 3.0
"""Seconds after which an operator gets an answer that is kept back; by then it is killed."""


class Step(NamedTuple):
    """A request at which the operator is killed."""

    what: str
    verb: str
    resource: str
    done: bool = False
    """Whether the server still carries it out."""
    skip: int = 0
    """How many such requests there are before it."""


REPORT = Step("creates its ClusterOperator", "create", "clusteroperators")
IS_THERE = Step("reads the ClusterOperator baremetal", "get", "clusteroperators")
READ = Step("reads the Deployment", "get", "deployments")
CLAIM = Step("claims", "patch", "deployments")
APPLY = Step("applies", "patch", "deployments", skip=1)


def done(step: Step) -> Step:
    return step._replace(done=True)


CLAIM_STEPS = (REPORT, done(REPORT), READ, CLAIM, done(CLAIM), APPLY, done(APPLY))
TAKE_BACK_STEPS = (IS_THERE, READ, READ, CLAIM, done(CLAIM), APPLY, done(APPLY))
A_FEW = ((done(CLAIM), CLAIM), (APPLY, done(CLAIM)), (done(APPLY), APPLY))


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(A_FEW, id="a few steps"),
        pytest.param(
            tuple(zip(CLAIM_STEPS, TAKE_BACK_STEPS, strict=True)),
            id="every step",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_killed_at_each_step_it_ends_where_it_would_have(
    metal: Metal,
    run_baremetal: StartOperator,
    run_machine_api: StartOperator,
    proxied: Proxied,
    steps: tuple[tuple[Step, Step], ...],
) -> None:
    """The pod is one and the same all the time."""
    of_baremetal, baremetal_proxied = proxied("baremetal")
    of_machine_api, machine_api_proxied = proxied("machine-api")
    metal.set_platform("BareMetal")
    metal.provision()
    machine_api = run_machine_api(B, machine_api_proxied)
    metal.wait_running("machine-api")
    running = metal.print()
    for claim, take_back in steps:
        # The operator that runs would take its label away: it is stopped meanwhile.
        machine_api.send(signal.SIGSTOP)
        metal.leave_a_label("machine-api")
        hold = stop_at(of_baremetal, claim)
        kill_at(metal, run_baremetal(baremetal_proxied), hold, claim, BAREMETAL_OWNS)
        of_baremetal.clear()
        machine_api.send(signal.SIGCONT)
        baremetal = run_baremetal()
        metal.wait_running()
        assert_taken_over(metal, "baremetal", BAREMETAL_OWNS, running)

        baremetal.kill()
        metal.leave_a_label("baremetal")
        metal.wait({"Available": "StandingDown"}, "machine-api")
        hold = stop_at(of_machine_api, take_back)
        metal.objects.delete("clusteroperator", "baremetal")
        kill_at(metal, machine_api, hold, take_back, MACHINE_API_OWNS)
        of_machine_api.clear()
        machine_api = run_machine_api(B, machine_api_proxied)
        eventually(lambda: metal.annotations() == [MACHINE_API_OWNS], "taken back")
        metal.wait_running("machine-api")
        assert_taken_over(metal, "machine-api", MACHINE_API_OWNS, running)
    assert machine_api.get("/readyz")[0] == 200


def stop_at(proxy: FaultProxy, step: Step) -> Hold:
    """Hold the request of a step, or keep back its answer."""
    hold = Hold()
    # Where the answer is kept back, those of all that follow too: an apply may conflict with the
    # new status of the Deployment at first.
    fault, times = (Late(ANSWERED_AFTER), None) if step.done else (hold, 1)
    proxy.inject(fault, verb=step.verb, resource=step.resource, skip=step.skip, times=times)
    return hold


def kill_at(metal: Metal, victim: OperatorProcess, hold: Hold, step: Step, annotation: str) -> None:
    """Kill the operator before a request reaches the server, or before it knows the answer."""

    def is_done() -> bool:
        if step.resource != "deployments":
            return bool(metal.objects.find("clusteroperator", "baremetal"))
        claimed = metal.annotations() == [annotation]
        return claimed and (step.skip == 0 or not metal.has_left_label())

    if step.done:
        eventually(is_done, f"{step} is done")
    else:
        assert hold.held.wait(60), step
    victim.kill()
    hold.let_go.set()


def assert_taken_over(metal: Metal, operator: str, annotation: str, running: Print) -> None:
    eventually(lambda: not metal.has_left_label(), "what the old owner had applied is gone")
    assert metal.annotations() == [annotation]
    assert metal.owners() == {f"quarterdeck-{operator}"}
    assert metal.print() == running
