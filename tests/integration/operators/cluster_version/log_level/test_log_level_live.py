"""The log level of a running cluster version operator, changed through the API."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.operators.cluster_version.log_level.controller import CONFIGS as RESOURCE
from quarterdeck.testing.audit import requests_by, writes_by
from quarterdeck.testing.log_level import (
    CONFIGS,
    VERBOSITY,
    VERSIONS,
    LogLevelObjects,
    wait_verbosity,
)
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

USER = "system:serviceaccount:openshift-cluster-version:cluster-version-operator"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CRD = f"{CRDS}/clusterversionoperators.operator.openshift.io"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
STATUS_WRITE = ("patch", "clusterversionoperators/status")


def status_writes(objects: LogLevelObjects) -> int:
    """How often the operator has written the object's status so far, counted at the server."""
    writes = writes_by(objects.plane.audit_log, USER)
    return len([it for it in writes if (it.verb, it.resource) == STATUS_WRITE])


def refusals(objects: LogLevelObjects) -> int:
    """How often the server has refused the operator something so far."""
    return sum(it.code == 403 for it in requests_by(objects.plane.audit_log, USER))


def wait_events(objects: LogLevelObjects, reason: str, at_least: int) -> list[Object]:
    """The events about the object, when there are so many."""

    def look() -> list[Object] | None:
        found = objects.events(reason)
        return found if len(found) >= at_least else None

    return eventually(look, f"{at_least} events {reason}")


def test_a_level_is_applied_then_observed_and_told(
    delivered: LogLevelObjects, run_cvo: StartOperator
) -> None:
    """First in force, then in status; an event, a metric, a first line; one write."""
    operator = run_cvo()
    delivered.wait_observed()
    before = status_writes(delivered)
    assert operator.metric(VERBOSITY) == 2
    delivered.set_level("Debug")
    delivered.wait_observed()
    assert operator.metric(VERBOSITY) == 4
    events = [line["event"] for line in operator.lines()]
    last_first = events.index("first line at this log level", events.index("log level reported"))
    assert "log level reported" in events[last_first:]
    first = operator.lines("first line at this log level")[-1]
    assert (first["before"], first["after"], first["v"]) == ("Normal", "Debug", 4)
    last = operator.lines("last line at this log level")[-1]
    assert (last["after"], last["v"]) == ("Debug", 2)
    (event,) = eventually(
        lambda: delivered.events("OperatorLogLevelChanged") or None, "an event about the change"
    )
    assert event["note"] == "operatorLogLevel changed from Normal to Debug"
    assert event["type"] == "Normal"
    assert status_writes(delivered) == before + 1


def test_a_restart_comes_back_at_the_level_and_writes_nothing(
    delivered: LogLevelObjects, run_cvo: StartOperator
) -> None:
    operator = run_cvo()
    delivered.wait_observed()
    delivered.set_level("Trace")
    delivered.wait_observed()
    eventually(lambda: delivered.events("OperatorLogLevelChanged") or None, "an event")
    operator.kill()
    before = writes_by(delivered.plane.audit_log, USER)
    again = run_cvo()
    wait_verbosity(again, 6)
    # What it would write, it has written before it has looked at everything once.
    done = 'controller_runtime_reconcile_total{controller="log-level-status",result="success"}'
    eventually(lambda: again.metric(done) >= 1, "one look at the status")
    assert writes_by(delivered.plane.audit_log, USER) == before
    assert len(delivered.events("OperatorLogLevelChanged")) == 1


@pytest.mark.parametrize(
    ("generation", "level", "before", "after"),
    [(1, "Normal", 0, 1), (3, "Normal", 2, 3), (4, "Trace", 3, 4), (40, "TraceAll", 3, 40)],
)
def test_observed_generation_is_that_of_the_level_in_force(
    objects: LogLevelObjects,
    run_cvo: StartOperator,
    generation: int,
    level: str,
    before: int,
    after: int,
) -> None:
    objects.make_gates()
    config = objects.make_config(level if generation == 1 else "Normal")
    for number in range(2, generation + 1):
        config = objects.set_level(
            level if number == generation else f"{['', 'Debug'][number % 2]}"
        )
    assert config["metadata"]["generation"] == generation
    if before:
        status = {"status": {"observedGeneration": before}}
        objects.send("PATCH", f"{CONFIGS}/cluster/status", status, merge=True)
    run_cvo()
    objects.wait_observed()
    assert objects.config()["status"]["observedGeneration"] == after


def test_without_the_object_nothing_is_made_and_nothing_fails(
    objects: LogLevelObjects, run_cvo: StartOperator
) -> None:
    objects.make_gates()
    operator = run_cvo()
    wait_verbosity(operator, 2)
    assert objects.config() is None
    assert not [it for it in operator.lines() if it["level"] == "error"]


def test_deleted_it_is_normal_at_once_and_recreated_it_counts_again(
    delivered: LogLevelObjects, run_cvo: StartOperator
) -> None:
    operator = run_cvo()
    delivered.set_level("TraceAll")
    wait_verbosity(operator, 8)
    delivered.delete_config()
    wait_verbosity(operator, 2)
    assert operator.lines("first line at this log level")[-1]["after"] == "Normal"
    delivered.make_config("Debug")
    wait_verbosity(operator, 4)
    delivered.wait_observed()
    for unset in ("", None):
        delivered.set_level("Debug")
        wait_verbosity(operator, 4)
        delivered.set_level(unset)
        wait_verbosity(operator, 2)
        delivered.wait_observed()


@pytest.fixture
def loosened(delivered: LogLevelObjects) -> Iterator[LogLevelObjects]:
    """The log level may be anything, as if the schema had been passed by; put back after."""
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/operatorLogLevel"
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    patch = [{"op": "replace", "path": path, "value": anything}]
    name = "clusterversionoperators.operator.openshift.io"
    delivered.plane.kubectl("patch", "crd", name, "--type=json", f"--patch={json.dumps(patch)}")
    eventually(lambda: _takes(delivered, "Loud"), "a schema that takes anything")
    delivered.set_level("Normal")
    yield delivered
    delivered.send("DELETE", f"{CONFIGS}/cluster")
    install_own_definitions(delivered.plane.requests())


def _takes(objects: LogLevelObjects, level: Any) -> bool:
    try:
        objects.set_level(level)
    except AssertionError:
        return False
    return True


def test_a_value_that_is_no_level_is_normal_with_one_warning_and_no_loop(
    loosened: LogLevelObjects, run_cvo: StartOperator
) -> None:
    operator = run_cvo()
    loosened.wait_observed()
    loosened.set_level("Trace")
    loosened.wait_observed()
    version = loosened.find(f"{VERSIONS}/version")
    for number, (value, shown) in enumerate((("Loud", "'Loud'"), (7, "'7'"), ([], "'[]'")), 1):
        loosened.set_level("Debug")
        wait_verbosity(operator, 4)
        loosened.wait_observed()
        writes = status_writes(loosened)
        loosened.set_level(value)
        wait_verbosity(operator, 2)
        loosened.wait_observed()
        assert status_writes(loosened) == writes + 1, "one write, and not tried again"
        told = wait_events(loosened, "UnknownLogLevel", number)
        assert len(told) == number
        assert any(shown in event["note"] for event in told)
        assert {event["type"] for event in told} == {"Warning"}
    assert loosened.find(f"{VERSIONS}/version") == version, "no business of ClusterVersion"
    assert not operator.lines("reconcile failed")


def test_status_writes_that_fail_do_not_hold_the_level_back(
    delivered: LogLevelObjects, run_cvo: StartOperator
) -> None:
    """Rights taken away: the level is in force, the retries are few; given back, it is told."""
    operator = run_cvo()
    delivered.wait_observed()
    before = refusals(delivered)
    binding = delivered.find(f"{BINDINGS}/quarterdeck-cluster-version")
    kept = {"metadata": {"name": "quarterdeck-cluster-version"}}
    kept |= {"roleRef": binding["roleRef"], "subjects": binding["subjects"]}
    reads = {"name": "cvo-reads"}
    role = {
        "metadata": reads,
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    }
    roles = BINDINGS.replace("bindings", "s")
    delivered.send("POST", roles, role)
    reference = binding["roleRef"] | {"name": "cvo-reads"}
    bound = {"metadata": reads, "roleRef": reference, "subjects": binding["subjects"]}
    delivered.send("POST", BINDINGS, bound)
    delivered.send("DELETE", f"{BINDINGS}/quarterdeck-cluster-version")
    try:
        levels = iter(["Debug", "Normal"] * 100)

        def refused() -> bool:
            # RBAC reaches the server's authorizer a moment later: change until it has.
            delivered.set_level(next(levels))
            return bool(operator.lines("reconcile failed"))

        eventually(refused, "a status write that is refused")
        for level, verbosity in (("Trace", 6), ("TraceAll", 8), ("Debug", 4), ("Trace", 6)):
            delivered.set_level(level)
            wait_verbosity(operator, verbosity)
        assert not delivered.observed()
        assert refusals(delivered) - before < 300, "not a loop"
    finally:
        delivered.send("POST", BINDINGS, kept)
    delivered.wait_observed()
    assert operator.metric(VERBOSITY) == 6


def test_a_missing_resource_type_is_waited_for_and_holds_nothing_up(
    objects: LogLevelObjects, run_cvo: StartOperator
) -> None:
    """The operator brings its own types: it is ready without them, and sees them come and go."""
    objects.make_gates()
    objects.make_config("Debug")
    operator = run_cvo()
    wait_verbosity(operator, 4)
    objects.send("DELETE", CRD)
    try:
        wait_verbosity(operator, 2)
        eventually(lambda: objects.find(CRD) is None, "the type gone")
        again = run_cvo()
        eventually(lambda: again.get("/readyz")[0] == 200, "ready without the type")
        wait_verbosity(again, 2)
    finally:
        install_own_definitions(objects.plane.requests())
    objects.make_config("Trace")
    for one in (operator, again):
        wait_verbosity(one, 6)
    objects.wait_observed()


def test_two_replicas_are_at_the_level_whoever_leads(
    delivered: LogLevelObjects, run_cvo: StartOperator
) -> None:
    """Only the leader writes; when it is killed, the other is at the level already."""
    quick = ("--leader-elect", "--lease-duration=6", "--renew-deadline=4", "--retry-period=0.5")
    leader = run_cvo(*quick)
    leader.logged("leading")
    standby = run_cvo(*quick)
    standby.logged("standing by")
    delivered.set_level("Trace")
    wait_verbosity(standby, 6)
    delivered.wait_observed()
    writes = status_writes(delivered)
    assert not standby.lines("log level reported")
    leader.kill()
    assert standby.metric(VERBOSITY) == 6
    standby.logged("leading")
    assert standby.metric(VERBOSITY) == 6
    assert status_writes(delivered) == writes, "nothing to say that was not said"
    delivered.set_level("Debug")
    delivered.wait_observed()
    standby.logged("log level reported")
    notes = wait_events(delivered, "OperatorLogLevelChanged", 2)
    assert sorted(event["note"] for event in notes) == [
        "operatorLogLevel changed from Normal to Trace",
        "operatorLogLevel changed from Trace to Debug",
    ]


@pytest.mark.slow
async def test_a_thousand_changes_end_at_the_last_and_leave_nothing_behind(
    delivered: LogLevelObjects, run_cvo: StartOperator, kubeconfig: Path
) -> None:
    operator = run_cvo()
    delivered.wait_observed()
    levels = ["Debug", "Trace", "TraceAll", "Normal"]

    async def change(times: int) -> None:
        async with Client(load_kubeconfig(str(kubeconfig))) as client:
            for number in range(times):
                patch = {"spec": {"operatorLogLevel": levels[number % 4]}}
                await client.patch(RESOURCE, "cluster", patch)
            await client.patch(RESOURCE, "cluster", {"spec": {"operatorLogLevel": "Trace"}})

    await change(50)
    delivered.wait_observed()
    before = (_open_files(operator.pid), _memory(operator.pid))
    await change(1000)
    delivered.wait_observed()
    assert operator.metric(VERBOSITY) == 6
    queue = 'workqueue_depth{controller="log-level",name="log-level"}'
    assert operator.metric(queue) == 0
    files, memory = before
    assert _open_files(operator.pid) <= files + 2
    assert _memory(operator.pid) < memory + 10_000_000
    assert len(delivered.events("OperatorLogLevelChanged")) < 60, "events are cut short"


def _open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _memory(pid: int) -> int:
    """Bytes of the process that are in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
