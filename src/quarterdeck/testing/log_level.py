"""The objects that set the cluster version operator's log level, for tests."""

import json
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.api_request import ComponentResponse
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.waiting import eventually

CONFIGS = "/apis/operator.openshift.io/v1alpha1/clusterversionoperators"
GATES = "/apis/config.openshift.io/v1/featuregates"
VERSIONS = "/apis/config.openshift.io/v1/clusterversions"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
VERBOSITY = "quarterdeck_log_verbosity"


class LogLevelObjects:
    """Administrator access to the ClusterVersionOperator and the FeatureGate."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._requests = plane.requests()

    def send(
        self, method: str, path: str, body: Any = None, *, merge: bool = False
    ) -> ComponentResponse:
        """Send a request that has to succeed."""
        encoded = None if body is None else json.dumps(body).encode()
        content = "application/merge-patch+json" if merge else "application/json"
        answer = self._requests.send(method, path, encoded, content)
        assert answer.ok, f"{method} {path}: {answer.body.decode()}"
        return answer

    def find(self, path: str) -> Any:
        """The object at a path; None if there is none."""
        answer = self._requests.send("GET", path)
        return None if answer.status == 404 else answer.json()

    def make_config(self, level: str | None = "Normal") -> Object:
        """Create the ClusterVersionOperator `cluster`."""
        spec = {} if level is None else {"operatorLogLevel": level}
        body = {"metadata": {"name": "cluster"}, "spec": spec}
        kind = {"apiVersion": "operator.openshift.io/v1alpha1", "kind": "ClusterVersionOperator"}
        made: Object = self.send("POST", CONFIGS, kind | body).json()
        return made

    def make_gates(self, spec: Object | None = None) -> None:
        """Create the FeatureGate `cluster`."""
        body = {"metadata": {"name": "cluster"}, "spec": spec or {}}
        kind = {"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate"}
        self.send("POST", GATES, kind | body)

    def config(self) -> Any:
        """The ClusterVersionOperator `cluster`."""
        return self.find(f"{CONFIGS}/cluster")

    def set_level(self, level: Any) -> Object:
        """Set a level, as `kubectl patch` does, and return the object."""
        patch = {"spec": {"operatorLogLevel": level}}
        changed: Object = self.send("PATCH", f"{CONFIGS}/cluster", patch, merge=True).json()
        return changed

    def set_gates(self, spec: Object) -> None:
        """Change the spec of the FeatureGate."""
        self.send("PATCH", f"{GATES}/cluster", {"spec": spec}, merge=True)

    def delete_config(self) -> None:
        """Delete the ClusterVersionOperator `cluster`."""
        self.send("DELETE", f"{CONFIGS}/cluster")

    def observed(self) -> bool:
        """Whether the status reports the latest generation."""
        config = self.config()
        seen = config.get("status", {}).get("observedGeneration")
        return bool(seen == config["metadata"]["generation"])

    def wait_observed(self) -> None:
        """Wait until the status reports the latest generation."""
        eventually(self.observed, "observedGeneration of the newest change")

    def events(self, reason: str) -> list[Object]:
        """The events about the object with that reason."""
        items = self.send("GET", EVENTS).json()["items"]
        about = [it for it in items if it["regarding"]["kind"] == "ClusterVersionOperator"]
        return [it for it in about if it["reason"] == reason]


def wait_verbosity(operator: OperatorProcess, wanted: int) -> None:
    """Wait until the process's metric reports this verbosity."""
    eventually(lambda: operator.metric(VERBOSITY) == wanted, f"verbosity {wanted}")
