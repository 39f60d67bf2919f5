"""The feature gate of the log level: off, on, for another version, written by somebody else."""

import pytest
from tests.objects import cluster_operator

from quarterdeck import __version__
from quarterdeck.api.meta import Object
from quarterdeck.testing.audit import AuditedRequest, writes_by
from quarterdeck.testing.log_level import (
    CONFIGS,
    GATES,
    VERSIONS,
    LogLevelObjects,
    wait_verbosity,
)
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

GATE = "ClusterVersionOperatorConfiguration"
USER = "system:serviceaccount:openshift-cluster-version:cluster-version-operator"
OPERATORS = "/apis/config.openshift.io/v1/clusteroperators"
CONFIG_OPERATOR = cluster_operator("config-operator")
STARTED_AT = 4
"""The verbosity that the tests' processes are started with."""


def upgradeable(objects: LogLevelObjects) -> str | None:
    version = objects.find(f"{VERSIONS}/version") or {}
    conditions = version.get("status", {}).get("conditions", [])
    return next((it["status"] for it in conditions if it["type"] == "Upgradeable"), None)


def test_turned_off_the_object_is_ignored_and_turned_on_it_counts(
    objects: LogLevelObjects, run_cvo: StartOperator
) -> None:
    """Off: the verbosity of the start holds and status says nothing. On: all of it at once."""
    off = {"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"disabled": [GATE]}}
    objects.make_gates(off)
    objects.make_config("Trace")
    operator = run_cvo()
    reported = operator.logged("feature gates reported")
    assert (reported["disabled"], reported["enabled"]) == ([GATE], [])
    objects.set_level("TraceAll")
    wait_verbosity(operator, STARTED_AT)
    ignored = operator.logged("log level ignored")
    assert ignored["why"] == "the feature gate is off"
    eventually(lambda: upgradeable(objects) == "False", "not upgradeable")

    objects.set_gates({"customNoUpgrade": {"disabled": []}})
    wait_verbosity(operator, 8)
    objects.wait_observed()

    objects.set_gates({"customNoUpgrade": {"disabled": [GATE]}})
    wait_verbosity(operator, STARTED_AT)
    observed = objects.config()["status"]["observedGeneration"]
    generation = objects.set_level("Debug")["metadata"]["generation"]
    objects.set_gates({"customNoUpgrade": {"enabled": [GATE], "disabled": [GATE]}})
    eventually(
        lambda: len(operator.lines("feature gates reported")) == 3, "three states of the gate"
    )
    assert operator.metric("quarterdeck_log_verbosity") == STARTED_AT, "disabled wins"
    assert objects.config()["status"]["observedGeneration"] == observed < generation


def test_without_a_payload_cluster_version_claims_nothing(
    objects: LogLevelObjects, run_cvo: StartOperator
) -> None:
    """It is made where there is none, and made again when it is deleted."""
    run_cvo()
    eventually(lambda: upgradeable(objects) == "True", "a first status")
    first = objects.find(f"{VERSIONS}/version")
    said = {it["type"]: it["status"] for it in first["status"]["conditions"]}
    assert said["Available"] == said["Progressing"] == said["Failing"] == "False"
    assert "history" not in first["status"]
    assert first["spec"]["clusterID"]
    objects.send("DELETE", f"{VERSIONS}/version")
    eventually(lambda: upgradeable(objects) == "True", "a new one")
    assert objects.find(f"{VERSIONS}/version")["metadata"]["uid"] != first["metadata"]["uid"]


def test_no_upgrade_cannot_be_left_again(objects: LogLevelObjects, run_cvo: StartOperator) -> None:
    objects.make_gates()
    run_cvo()
    eventually(lambda: upgradeable(objects) == "True", "upgradeable")
    objects.set_gates({"featureSet": "TechPreviewNoUpgrade"})
    eventually(lambda: upgradeable(objects) == "False", "not upgradeable any more")
    for other in ("", "CustomNoUpgrade"):
        with pytest.raises(AssertionError, match="TechPreviewNoUpgrade may not be changed"):
            objects.set_gates({"featureSet": other})
    with pytest.raises(AssertionError, match="cannot be removed"):
        objects.set_gates({"featureSet": None})


def test_the_status_is_computed_once_where_nobody_else_writes_it(
    objects: LogLevelObjects, run_cvo: StartOperator
) -> None:
    objects.make_gates()
    operator = run_cvo()
    operator.logged("feature gates reported")
    status = objects.find(f"{GATES}/cluster")["status"]
    assert status["featureGates"] == [{"version": __version__, "enabled": [{"name": GATE}]}]
    operator.kill()
    written = gate_writes(objects)
    again = run_cvo()
    done = 'controller_runtime_reconcile_total{controller="feature-gates",result="success"}'
    eventually(lambda: again.metric(done) >= 1, "one look at the gates")
    assert gate_writes(objects) == written


def gate_writes(objects: LogLevelObjects) -> list[AuditedRequest]:
    """The operator's writes to the gates; ClusterVersion may come before or after a kill."""
    made = writes_by(objects.plane.audit_log, USER)
    return [one for one in made if one.resource.startswith("featuregates")]


def test_an_entry_for_another_version_only_is_off_and_is_left_to_its_owner(
    objects: LogLevelObjects, run_cvo: StartOperator, request: pytest.FixtureRequest
) -> None:
    """A version skew: somebody else writes the status, and has not said a word about ours."""
    objects.make_gates()
    objects.send("POST", OPERATORS, CONFIG_OPERATOR)
    request.addfinalizer(lambda: objects.send("DELETE", f"{OPERATORS}/config-operator"))
    objects.make_config("Trace")
    theirs = {"featureGates": [{"version": "99.0.0", "enabled": [{"name": GATE}]}]}
    path = f"{GATES}/cluster/status?fieldManager=config-operator"
    objects.send("PATCH", path, {"status": theirs}, merge=True)
    operator = run_cvo()
    operator.logged("feature gates left to their owner")
    wait_verbosity(operator, STARTED_AT)
    assert objects.find(f"{GATES}/cluster")["status"] == theirs
    assert "status" not in objects.find(f"{CONFIGS}/cluster")

    skewed = run_cvo("--release-version=99.0.0")
    wait_verbosity(skewed, 6)
    ours = {"version": __version__, "enabled": [{"name": GATE}]}
    theirs["featureGates"].append(ours)
    objects.send("PATCH", path, {"status": theirs}, merge=True)
    wait_verbosity(operator, 6)


def test_a_status_that_was_written_by_hand_is_put_right(
    objects: LogLevelObjects, run_cvo: StartOperator
) -> None:
    """No cluster operator says that it owns the status, so whoever wrote it does not keep it."""
    objects.make_gates()
    objects.make_config("Trace")
    theirs = {"featureGates": [{"version": "99.0.0", "enabled": [{"name": GATE}]}]}
    path = f"{GATES}/cluster/status?fieldManager=kubectl-edit"
    objects.send("PATCH", path, {"status": theirs}, merge=True)
    operator = run_cvo()
    wait_verbosity(operator, 6)
    (entry,) = objects.find(f"{GATES}/cluster")["status"]["featureGates"]
    assert entry["version"] == __version__


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"version": "99.0.0", "enabled": [{"name": GATE}]}, id="another version"),
        pytest.param({"version": __version__, "disabled": [{"name": GATE}]}, id="turned off"),
    ],
)
def test_a_status_that_is_written_by_hand_while_it_runs_is_put_right(
    objects: LogLevelObjects, run_cvo: StartOperator, entry: Object
) -> None:
    objects.make_gates()
    objects.make_config("Trace")
    operator = run_cvo()
    wait_verbosity(operator, 6)
    before = objects.find(f"{GATES}/cluster")["status"]
    path = f"{GATES}/cluster/status?fieldManager=kubectl-edit"
    answer = objects.send("PATCH", path, {"status": {"featureGates": [entry]}}, merge=True)
    assert answer.json()["status"]["featureGates"] == [entry]
    eventually(lambda: objects.find(f"{GATES}/cluster")["status"] == before, "its own status")
    wait_verbosity(operator, 6)


def test_in_a_hosted_cluster_the_object_means_nothing_even_if_somebody_brings_it(
    objects: LogLevelObjects, run_cvo: StartOperator
) -> None:
    """Its administrator is not the one who pays for the logs."""
    objects.make_gates()
    objects.make_config("TraceAll")
    operator = run_cvo("--cluster-profile=hypershift")
    operator.logged("feature gates reported")
    eventually(lambda: upgradeable(objects), "a look at everything")
    started = [line["controller"] for line in operator.lines("controller started")]
    assert not [name for name in started if "log-level" in name]
    assert not operator.lines("first line at this log level")
    assert "status" not in objects.config()
