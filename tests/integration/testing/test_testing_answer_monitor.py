"""The monitor of answers to the staleness challenge, on a real API server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.objects import cluster_operator, condition

from quarterdeck.localcluster import ControlPlane
from quarterdeck.status.staleness_marks import checking_message, original
from quarterdeck.testing.answer_monitor import AnswerMonitor
from quarterdeck.testing.plugin import Kubectl
from quarterdeck.testing.waiting import LIMIT, eventually

COLLECTION = "/apis/config.openshift.io/v1/clusteroperators"
SLOW = 1e6
"""More seconds than any test takes."""


class Time:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


class Operator:
    """A ClusterOperator that is challenged and answered by hand."""

    def __init__(self, control_plane: ControlPlane, name: str) -> None:
        self._requests = control_plane.requests()
        self.name = name
        self._requests.apply(COLLECTION, cluster_operator(name))
        self.say("all is well")

    def say(self, message: str) -> None:
        said = condition("Available", "True", message)
        lease = {
            "group": "coordination.k8s.io",
            "resource": "leases",
            "namespace": self.name,
            "name": "me",
        }
        status = {"conditions": [said], "relatedObjects": [lease]}
        path = f"{COLLECTION}/{self.name}/status"
        body = json.dumps({"status": status}).encode()
        answer = self._requests.send("PATCH", path, body, "application/merge-patch+json")
        assert answer.ok, answer.body

    def challenge(self) -> None:
        self.say(checking_message("all is well"))

    def answer(self) -> None:
        self.say(original(checking_message("all is well")))


class Watched:
    """A monitor with a clock of the test's own, and an operator."""

    def __init__(self, monitor: AnswerMonitor, time: Time, operator: Operator) -> None:
        self.monitor = monitor
        self.time = time
        self.operator = operator

    def is_late(self) -> bool:
        """Whether no answer is a failure by now."""
        return any(one.name == self.operator.name for one in self.monitor.take_failures())

    def seen_challenged(self) -> None:
        """Return when the monitor has seen the challenge: much later it would be a failure."""

        def seen() -> bool:
            self.time.now += SLOW
            try:
                return bool(self.monitor.take_failures())
            finally:
                self.time.now -= SLOW

        eventually(seen, "the monitor sees the challenge")


@pytest.fixture
def watched(
    control_plane: ControlPlane, crds: list[str], kubeconfig: Path, namespace: str
) -> Iterator[Watched]:
    operator, time = Operator(control_plane, namespace), Time()
    with AnswerMonitor(kubeconfig, clock=time) as monitor:
        assert monitor.wait_synced(LIMIT)
        yield Watched(monitor, time, operator)
    control_plane.requests().send("DELETE", f"{COLLECTION}/{namespace}")


def test_an_answer_is_measured_and_none_is_a_failure(watched: Watched) -> None:
    name = watched.operator.name
    watched.monitor.runs(name)
    watched.operator.challenge()
    watched.seen_challenged()
    watched.time.now += 7
    watched.operator.answer()
    eventually(lambda: watched.monitor.slowest.get(name) == 7, "the answer is seen")
    assert watched.monitor.take_failures() == []

    watched.operator.challenge()
    watched.seen_challenged()
    watched.time.now += 31
    assert watched.is_late()


def test_nobody_is_blamed_who_does_not_run_or_is_excused(watched: Watched) -> None:
    name = watched.operator.name
    watched.monitor.runs(name)
    watched.operator.challenge()
    watched.seen_challenged()
    with watched.monitor.excused(name):
        watched.time.now += 100
        assert not watched.is_late()
    watched.monitor.runs(name, running=False)
    watched.time.now += 100
    assert not watched.is_late()
    watched.monitor.runs(name)
    watched.time.now += 29
    assert not watched.is_late(), "it has 30 seconds from when it runs"
    watched.time.now += 2
    assert watched.is_late()


def test_an_operator_runs_while_its_deployment_has_a_ready_replica(
    watched: Watched, kubectl: Kubectl, namespace: str
) -> None:
    """The simulated node makes the pods ready; nothing answers the challenge in them."""
    watched.operator.challenge()
    space = f"--namespace={namespace}"
    kubectl("create", "deployment", "me", "--image=example.test/me", space)
    watched.seen_challenged()
    watched.time.now += 31
    assert watched.is_late()
    kubectl("scale", "deployment", "me", "--replicas=0", space)

    def calm() -> bool:
        watched.time.now += 31
        return not watched.is_late() and not watched.is_late()

    eventually(calm, "nobody is blamed any more")


# The inner run has no control plane of its own: it follows the one of the test around it.
OUTER = """
import os
from pathlib import Path
import pytest

@pytest.fixture(scope="session")
def control_plane():
    class Outer:
        kubeconfig = Path(os.environ["OUTER_KUBECONFIG"])
    return Outer()
"""
INNER = """
import asyncio, os, time
from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

def answer(name):
    async def write():
        async with Client(load_kubeconfig(os.environ["OUTER_KUBECONFIG"])) as client:
            found = await client.get(PLAIN_CLUSTER_OPERATORS, name)
            condition = found["status"]["conditions"][0] | {"message": "m"}
            status = {"status": {"conditions": [condition]}}
            await client.patch(PLAIN_CLUSTER_OPERATORS, name, status, subresource="status")
    asyncio.run(write())

def test_late(answer_monitor):
    name = os.environ["OUTER_NAME"]
    answer_monitor._answers.limit = 0.5
    answer_monitor.runs(name)
    assert answer_monitor.wait_synced(60)
    time.sleep(1)
    answer(name)
    while not answer_monitor.slowest:
        time.sleep(0.05)
"""


@pytest.mark.parametrize("workers", [(), ("-n1",)], ids=["by itself", "in a worker"])
def test_a_late_answer_fails_the_run_and_the_slowest_are_printed(
    watched: Watched,
    kubeconfig: Path,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    workers: tuple[str, ...],
) -> None:
    monkeypatch.setenv("OUTER_KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("OUTER_NAME", watched.operator.name)
    watched.operator.challenge()
    pytester.makeconftest(OUTER)
    pytester.makepyfile(INNER)
    result = pytester.runpytest_subprocess("-p", "no:asyncio", *workers, timeout=LIMIT)
    result.assert_outcomes(passed=1, errors=1)
    stood = "the staleness checker's text stood for * s under a running operator, which answered"
    result.stdout.fnmatch_lines([f"*ClusterOperator {watched.operator.name}: {stood}"])
    title = "*slowest answers to the staleness challenge*"
    result.stdout.fnmatch_lines([title, f"* s  {watched.operator.name}"])
