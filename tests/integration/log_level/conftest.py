"""The cluster version operator as users run it, under its own account, and its objects."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.operator_process import OperatorProcess, eventually

DEPLOY = Path(__file__).parents[3] / "deploy" / "cluster-version"
NAMESPACE = "openshift-cluster-version"
VERBOSITY = "quarterdeck_log_verbosity"


class Cluster:
    """The cluster's objects about the log level, seen and changed by an administrator."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.plane = control_plane

    def kubectl(self, *args: str, text: str | None = None) -> str:
        return self.plane.kubectl(*args, input=text).stdout

    def find(self, kind: str, name: str = "cluster") -> Any:
        found = self.kubectl("get", kind, name, "--ignore-not-found", "-o", "json")
        return json.loads(found) if found else None

    def config(self) -> Any:
        return self.find("clusterversionoperator")

    def patch(self, kind: str, patch: Object, *flags: str, name: str = "cluster") -> None:
        body = f"--patch={json.dumps(patch)}"
        self.kubectl("patch", kind, name, "--type=merge", body, *flags)

    def set_level(self, level: str) -> None:
        self.patch("clusterversionoperator", {"spec": {"operatorLogLevel": level}})

    def make_config(self, level: str = "Normal") -> None:
        manifest = {
            "apiVersion": "operator.openshift.io/v1alpha1",
            "kind": "ClusterVersionOperator",
            "metadata": {"name": "cluster"},
            "spec": {"operatorLogLevel": level},
        }
        self.kubectl("create", "-f", "-", text=json.dumps(manifest))

    def make_gates(self, spec: Object | None = None) -> None:
        manifest = {
            "apiVersion": "config.openshift.io/v1",
            "kind": "FeatureGate",
            "metadata": {"name": "cluster"},
            "spec": spec or {},
        }
        self.kubectl("create", "-f", "-", text=json.dumps(manifest))

    def observed(self) -> bool:
        config = self.config()
        seen = config.get("status", {}).get("observedGeneration")
        return bool(seen == config["metadata"]["generation"])

    def wait_observed(self) -> None:
        eventually(self.observed, "observedGeneration of the newest change")

    def events(self, reason: str) -> list[Object]:
        found = json.loads(
            self.kubectl("get", "events.events.k8s.io", "-n", "default", "-o", "json")
        )
        about = [it for it in found["items"] if it["regarding"]["name"] == "cluster"]
        return [it for it in about if it["reason"] == reason]


def wait_verbosity(operator: OperatorProcess, wanted: int) -> None:
    """Return when the process logs at this verbosity, by its own metric."""
    eventually(lambda: operator.metric(VERBOSITY) == wanted, f"verbosity {wanted}")


@pytest.fixture
def account(control_plane: ControlPlane, crds: list[str], clean_cluster: None) -> Iterator[Path]:
    """The kubeconfig of the cluster version operator's own account, with its delivered rights."""
    control_plane.kubectl("apply", "--server-side", f"--filename={DEPLOY / 'rbac.yaml'}")
    yield control_plane.kubeconfig_for_service_account(NAMESPACE, "cluster-version-operator")
    events = ("events.events.k8s.io", "-n", "default", "--all")
    control_plane.kubectl("delete", *events, "--wait=false")
    control_plane.kubectl("delete", "leases", "-n", NAMESPACE, "--all")


@pytest.fixture
def cluster(control_plane: ControlPlane, account: Path) -> Cluster:
    """Without a FeatureGate and a ClusterVersionOperator; the test makes what it needs."""
    return Cluster(control_plane)


@pytest.fixture
def ready_cluster(cluster: Cluster) -> Cluster:
    """With both, as they are delivered."""
    cluster.kubectl("create", f"--filename={DEPLOY / 'config.yaml'}")
    return cluster


@pytest.fixture
def run_cvo(account: Path, tmp_path: Path) -> Iterator[Callable[..., OperatorProcess]]:
    """Starts the cluster version operator in a process of its own; killed after the test."""
    started: list[OperatorProcess] = []

    def start(*options: str, kubeconfig: Path = account) -> OperatorProcess:
        process = OperatorProcess(
            ["--operator=cluster-version", f"--kubeconfig={kubeconfig}", *options],
            tmp_path / f"replica-{len(started)}.log",
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
