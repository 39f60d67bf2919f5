"""`quarterdeck log-level`, against a running cluster version operator."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.localcluster.definitions import install_own_definitions
from quarterdeck.testing.fault_proxy import Answer, FaultProxy
from quarterdeck.testing.log_level import CONFIGS, LogLevelObjects, wait_verbosity
from quarterdeck.testing.operator_process import OperatorProcess, StartOperator
from quarterdeck.testing.waiting import eventually

Run = Callable[..., "subprocess.CompletedProcess[str]"]

GATE = "ClusterVersionOperatorConfiguration"
ANNOTATION = "quarterdeck.dev/log-level-expiry"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/openshift-cluster-version/leases"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
CRD += "clusterversionoperators.operator.openshift.io"


@pytest.fixture
def log_level(kubeconfig: Path) -> Run:
    """Runs `quarterdeck log-level` as the administrator."""

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "quarterdeck", "log-level", *words],
            env=os.environ | {"KUBECONFIG": str(kubeconfig)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def operator(delivered: LogLevelObjects, run_cvo: StartOperator) -> OperatorProcess:
    """A running operator that has observed its delivered configuration."""
    operator = run_cvo()
    delivered.wait_observed()
    return operator


def test_set_waits_until_the_level_is_in_force_and_get_shows_it(
    delivered: LogLevelObjects, operator: OperatorProcess, log_level: Run
) -> None:
    done = log_level("set", "debug")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "log level Debug (verbosity 4) is in force; it was Normal\n"
    assert delivered.observed()
    assert operator.metric("quarterdeck_log_verbosity") == 4
    shown = log_level("get").stdout.splitlines()
    assert shown[0].split() == ["LEVEL", "VERBOSITY", "IN", "FORCE", "UNTIL", "THEN"]
    assert shown[1].split() == ["Debug", "4", "yes", "-", "-"]
    data = json.loads(log_level("get", "-o", "json").stdout)
    assert (data["level"], data["inForce"], data["until"]) == ("Debug", True, None)
    again = log_level("set", "Debug", "-o", "yaml")
    assert "level: Debug" in again.stdout


@pytest.mark.slow
def test_for_a_while_reverts_when_the_command_is_gone(
    delivered: LogLevelObjects, operator: OperatorProcess, log_level: Run
) -> None:
    """Nobody but the operator is left to do it."""
    log_level("set", "Debug")
    done = log_level("set", "Trace", "--for", "5s")
    assert "log level Trace (verbosity 6) is in force until " in done.stdout
    assert "then Debug; it was Debug" in done.stdout
    assert operator.metric("quarterdeck_log_verbosity") == 6
    wait_verbosity(operator, 4)
    eventually(lambda: _level(delivered) == "Debug", "the object says so too")
    assert ANNOTATION not in delivered.config()["metadata"].get("annotations", {})
    delivered.wait_observed()


@pytest.mark.slow
def test_for_a_while_reverts_after_a_restart_of_the_operator(
    delivered: LogLevelObjects, operator: OperatorProcess, log_level: Run, run_cvo: StartOperator
) -> None:
    """The deadline passes while no operator runs."""
    log_level("set", "Trace", "--for", "5s")
    operator.kill()
    assert _level(delivered) == "Trace"
    written = delivered.config()["metadata"]["annotations"][ANNOTATION]
    until = written.removeprefix("Trace until ").removesuffix(", then Normal")
    eventually(lambda: _server_time(delivered) > until, "the deadline to pass")
    again = run_cvo()
    wait_verbosity(again, 2)
    eventually(lambda: _level(delivered) == "Normal", "the object says so too")
    delivered.wait_observed()
    levels = [line["after"] for line in again.lines("first line at this log level")]
    assert "Trace" not in levels, "its time was over before the start"


def test_every_replica_reverts_by_itself_when_the_object_cannot_be_written(
    delivered: LogLevelObjects, run_cvo: StartOperator
) -> None:
    """A replica that does not lead is back at the deadline, and writes nothing."""
    lease = f"{LEASES}/cluster-version-operator"
    held = {
        "metadata": {"name": "cluster-version-operator"},
        "spec": {
            "holderIdentity": "somebody",
            "leaseDurationSeconds": 3600,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        },
    }
    delivered.send("POST", LEASES, held)
    gates = "/apis/config.openshift.io/v1/featuregates/cluster/status"
    entry = {"version": "0.1.0", "enabled": [{"name": GATE}]}
    delivered.send("PATCH", gates, {"status": {"featureGates": [entry]}}, merge=True)
    standby = run_cvo("--leader-elect")
    now = _server_time(delivered)
    expiry = f"Trace until {now[:17]}00Z, then Debug"
    patch: Any = {"metadata": {"annotations": {ANNOTATION: expiry}}}
    patch["spec"] = {"operatorLogLevel": "Trace"}
    delivered.send("PATCH", f"{CONFIGS}/cluster", patch, merge=True)
    wait_verbosity(standby, 4)
    assert _level(delivered) == "Trace"
    assert delivered.find(lease)["spec"]["holderIdentity"] == "somebody"


@pytest.mark.slow
def test_for_a_while_reverts_while_the_server_is_away(
    delivered: LogLevelObjects,
    run_cvo: StartOperator,
    fault_proxy: FaultProxy,
    log_level: Run,
    tmp_path: Path,
) -> None:
    """The operator needs nobody for it; the object follows when the server is back."""
    proxied = fault_proxy.write_kubeconfig(tmp_path / "proxied")
    operator = run_cvo(f"--kubeconfig={proxied}")
    delivered.wait_observed()
    log_level("set", "Trace", "--for", "5s")
    assert operator.metric("quarterdeck_log_verbosity") == 6
    fault_proxy.inject(Answer(503), times=None)
    fault_proxy.cut_now()
    wait_verbosity(operator, 2)
    assert _level(delivered) == "Trace"
    fault_proxy.clear()
    eventually(lambda: _level(delivered) == "Normal", "the object says so too")
    delivered.wait_observed()


def test_another_choice_ends_the_expiry(
    delivered: LogLevelObjects, operator: OperatorProcess, log_level: Run
) -> None:
    log_level("set", "Trace", "--for", "1h")
    assert ANNOTATION in delivered.config()["metadata"]["annotations"]
    delivered.set_level("Debug")
    eventually(
        lambda: ANNOTATION not in delivered.config()["metadata"]["annotations"],
        "an expiry that means nothing any more to be taken away",
    )
    assert _level(delivered) == "Debug"
    log_level("set", "TraceAll", "--for", "1h")
    log_level("set", "TraceAll")
    assert ANNOTATION not in delivered.config()["metadata"]["annotations"]


@pytest.mark.parametrize(
    "expiry",
    [
        pytest.param("soon", id="no time"),
        pytest.param(
            "Trace until 9999-12-31T23:59:59-14:00, then Normal", id="no such time in UTC"
        ),
    ],
)
def test_an_expiry_that_cannot_be_read_is_told_and_the_level_holds(
    delivered: LogLevelObjects, operator: OperatorProcess, expiry: str
) -> None:
    patch = {
        "metadata": {"annotations": {ANNOTATION: expiry}},
        "spec": {"operatorLogLevel": "Trace"},
    }
    delivered.send("PATCH", f"{CONFIGS}/cluster", patch, merge=True)
    (event,) = eventually(lambda: delivered.events("UnreadableExpiry") or None, "a warning")
    assert f"{expiry!r} cannot be read" in event["note"]
    assert "quarterdeck log-level set" in event["note"]
    wait_verbosity(operator, 6)
    delivered.wait_observed()
    assert _level(delivered) == "Trace"


def _level(objects: LogLevelObjects) -> str:
    level: str = objects.config()["spec"]["operatorLogLevel"]
    return level


def _server_time(objects: LogLevelObjects) -> str:
    """Now, as the API server writes it."""
    path = "/api/v1/namespaces/openshift-cluster-version/serviceaccounts/default/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    issued: str = objects.send("POST", path, body).json()["metadata"]["creationTimestamp"]
    return issued


def test_with_the_gate_off_set_fails_and_says_why_and_what_to_do(
    objects: LogLevelObjects, run_cvo: StartOperator, log_level: Run
) -> None:
    objects.make_config("Debug")
    missing = log_level("set", "Trace")
    assert missing.returncode == 2
    assert "there is no FeatureGate cluster" in missing.stderr

    off = {"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"disabled": [GATE]}}
    objects.make_gates(off)
    early = log_level("set", "Trace")
    assert early.returncode == 2
    assert "says nothing about version" in early.stderr

    operator = run_cvo()
    operator.logged("cluster version reported")
    operator.logged("feature gates reported")
    refused = log_level("set", "Trace")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert f"the feature gate {GATE} is off" in refused.stderr
    assert _level(objects) == "Debug", "nothing was written"
    shown = log_level("get")
    assert shown.returncode == 0
    assert shown.stdout.splitlines()[1].split()[:3] == ["Debug", "4", "no"]

    command = refused.stderr.partition("turn it on with: kubectl ")[2].strip()
    *words, patch = command.split(" ", 5)
    assert words == ["patch", "featuregate", "cluster", "--type=merge", "-p"]
    objects.plane.kubectl(*words, patch.strip("'"))
    done = eventually(
        lambda: tried if (tried := log_level("set", "Trace")).returncode == 0 else None,
        "the command that it names turns the gate on",
    )
    assert "Trace (verbosity 6) is in force" in done.stdout


def test_without_an_operator_set_says_that_it_is_not_in_force(
    delivered: LogLevelObjects, operator: OperatorProcess, log_level: Run
) -> None:
    operator.kill()
    late = log_level("set", "Trace", "--timeout", "0.5s")
    assert late.returncode == 2
    assert "accepted, but is not in force after 0.5 s" in late.stderr
    assert "kubectl get pods" in late.stderr
    assert "not applied yet" in log_level("get").stdout


@pytest.fixture
def _type_comes_back(objects: LogLevelObjects) -> Iterator[None]:
    yield
    install_own_definitions(objects.plane.requests())


@pytest.mark.usefixtures("_type_comes_back")
def test_without_the_object_or_its_type_the_error_says_so(
    objects: LogLevelObjects, log_level: Run
) -> None:
    for words in (("get",), ("set", "Debug")):
        done = log_level(*words)
        assert done.returncode == 2
        assert "there is no ClusterVersionOperator cluster" in done.stderr
        assert done.stderr.count("\n") == 1
    objects.send("DELETE", CRD)
    eventually(lambda: objects.find(CRD) is None, "the type gone")
    done = log_level("get")
    assert done.returncode == 2
    assert "no resource type clusterversionoperators.operator.openshift.io" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("set", "Loud"), "'Loud' is not one of", id="no such level"),
        pytest.param(("set", "Trace", "--for", "soon"), "30m, 1h30m or 45s", id="no such time"),
        pytest.param(("get", "--kubeconfig", "/nope"), "/nope", id="no such kubeconfig"),
        pytest.param(("get", "--context", "nope"), "nope", id="no such context"),
    ],
)
def test_wrong_words_are_answered_in_words(log_level: Run, words: Any, said: str) -> None:
    done = log_level(*words)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
