"""A management cluster as its administrator sees it: HostedClusters, and what they get."""

import base64
from typing import Any

from tests import objects

from quarterdeck import __version__
from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.operators.hosted.names import CONFIG_MAP, DEPLOYMENT, KUBECONFIG
from quarterdeck.testing.api_objects import ApiObjects
from quarterdeck.testing.audit import AuditedRequest, writes_by
from quarterdeck.testing.waiting import LIMIT, until

USER = "system:serviceaccount:hypershift:hosted-operator"
SIMULATED = "example.test/release:0.1.0"
"""An image that is not ours: its pods are on the node `simulated`."""
GATE = "ClusterVersionOperatorConfiguration"
HC, HCP = "hostedcluster", "hostedcontrolplane"


def hosted_cluster(name: str, namespace: str, image: str = SIMULATED, **spec: Any) -> Object:
    """A HostedCluster with the kubeconfig of the Secret `kubeconfig`."""
    base = {"release": {"image": image}, "kubeconfigSecret": {"name": "kubeconfig"}}
    return {
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedCluster",
        "metadata": objects.metadata(name, namespace),
        "spec": base | spec,
    }


def configuration(level: str) -> Object:
    """An operatorConfiguration with this level."""
    return {"clusterVersionOperator": {"operatorLogLevel": level}}


class Management:
    """A management cluster, with HostedClusters in one namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.plane = plane
        self.namespace = namespace
        self.objects = ApiObjects(plane.requests(), namespace)

    def add_kubeconfig(self, text: str = "{}", name: str = "kubeconfig") -> None:
        """Create or change the Secret with a kubeconfig."""
        data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
        self.objects.apply(secret | {"metadata": {"name": name, "namespace": self.namespace}})

    def add(self, name: str, image: str = SIMULATED, **spec: Any) -> None:
        """Create a HostedCluster."""
        self.objects.apply(hosted_cluster(name, self.namespace, image, **spec))

    def configure(self, name: str, value: Object | None) -> None:
        """Set `spec.operatorConfiguration`, or remove it."""
        # First removed: a merge would keep what is not named.
        self.objects.patch(HC, name, {"spec": {"operatorConfiguration": None}})
        if value is not None:
            self.objects.patch(HC, name, {"spec": {"operatorConfiguration": value}})

    def set_level(self, name: str, level: str) -> None:
        """Set the level, as `kubectl patch` does."""
        self.objects.patch(HC, name, {"spec": {"operatorConfiguration": configuration(level)}})

    def place(self, name: str) -> str:
        """The namespace of a control plane."""
        return f"{self.namespace}-{name}"

    def plane_of(self, name: str) -> Any:
        """The HostedControlPlane; None if there is none."""
        return self.objects.find(HCP, name, namespace=self.place(name))

    def copied(self, name: str) -> Any:
        """The operatorConfiguration of the HostedControlPlane."""
        return ((self.plane_of(name) or {}).get("spec") or {}).get("operatorConfiguration")

    def wait_copied(self, name: str, value: Object | None) -> None:
        """Wait until the HostedControlPlane has this operatorConfiguration, or none."""
        until(lambda: self.copied(name), lambda it: it == value, f"{value} was copied")

    def file(self, name: str) -> str:
        """The configuration file in the ConfigMap; empty if there is none."""
        found = self.objects.find("configmap", CONFIG_MAP, namespace=self.place(name))
        return str((found.get("data") or {}).get("config.yaml")) if found else ""

    def deployment(self, name: str) -> Any:
        """The Deployment of the hosted cluster version operator; None if there is none."""
        return self.objects.find("deployment", DEPLOYMENT, namespace=self.place(name))

    def kubeconfig(self, name: str) -> str | None:
        """The text of the copied kubeconfig; None if there is no copy."""
        found = self.objects.find("secret", KUBECONFIG, namespace=self.place(name))
        return base64.b64decode(found["data"]["kubeconfig"]).decode() if found else None

    def condition(self, name: str, type_: str) -> Object:
        """A condition of a HostedCluster; empty if it has none of this type."""
        status = (self.objects.find(HC, name) or {}).get("status") or {}
        found = [one for one in status.get("conditions") or () if one["type"] == type_]
        return dict(found[0]) if found else {"status": "", "reason": "", "message": ""}

    def wait_condition(self, name: str, type_: str, status: str, text: str = "") -> Object:
        """The condition, when it has this status and this in its reason or message."""
        return until(
            lambda: self.condition(name, type_),
            lambda it: it["status"] == status and text in f"{it['reason']} {it['message']}",
            f"{type_}={status} of {name} with {text!r}",
        )

    def wait_gone(self, name: str, limit: float = LIMIT) -> None:
        """Wait until the HostedCluster is gone."""
        until(lambda: self.objects.find(HC, name), lambda it: it is None, f"{name} is gone", limit)

    def wait_level(self, name: str, level: str | None) -> None:
        """Wait until the ConfigMap has this level, or none."""
        wanted = "spec: {}\n" if level is None else f"spec:\n  operatorLogLevel: {level}\n"
        until(lambda: self.file(name), lambda text: text.endswith(wanted), f"{level} in the file")

    def set_gate(self, *, on: bool, version: str = __version__) -> None:
        """Write the status of the FeatureGate `cluster`, as its owner does."""
        gates = {"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "spec": {}}
        self.objects.apply(gates | {"metadata": {"name": "cluster"}})
        entry: Object = {"version": version, "enabled": [], "disabled": []}
        entry["enabled" if on else "disabled"] = [{"name": GATE}]
        status = {"status": {"featureGates": [entry]}}
        self.objects.patch("featuregate", "cluster", status, subresource="status")

    def writes(self) -> list[AuditedRequest]:
        """The hosted operator's successful writes so far."""
        return [it for it in writes_by(self.plane.audit_log, USER) if it.code < 300]
