"""A catalog with the bundles of the documentation, whose operator runs from the pushed image.

They also bring a Service and a definition, as bundles of others do.
"""

import shutil
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.cluster import RealCluster
from tests.e2e.conftest import Images
from tests.places import DOCS

PACKAGE = "sample-operator"
NAMESPACE = "subscribed"
FIRST, LAST = f"{PACKAGE}.v0.1.0", f"{PACKAGE}.v0.2.0"
DEFINITION = "things.example.test"
_ALPHA = "operators.coreos.com/v1alpha1"


def build(cluster: RealCluster, images: Images, folder: Path) -> list[dict[str, Any]]:
    """The catalog as objects, in a namespace of its own; built as a user does."""
    bundles = folder / "bundles"
    shutil.copytree(DOCS / "examples" / "bundles", bundles)
    for path in bundles.rglob("*.clusterserviceversion.yaml"):
        csv = yaml.safe_load(path.read_text())
        (deployed,) = csv["spec"]["install"]["spec"]["deployments"]
        (container,) = deployed["spec"]["template"]["spec"]["containers"]
        container["image"] = images.operators
        owned = [{"name": DEFINITION, "version": "v1", "kind": "Thing"}]
        csv["spec"]["customresourcedefinitions"]["owned"] = owned
        path.write_text(yaml.safe_dump(csv))
        (path.parent / "service.yaml").write_text(yaml.safe_dump(_service()))
        (path.parent / "definition.yaml").write_text(yaml.safe_dump(_definition()))
    cluster.quarterdeck("catalog", "build", str(bundles), "--to", str(folder / "catalog"))
    files = {one.name: one.read_text() for one in (folder / "catalog" / PACKAGE).iterdir()}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        _named("v1", "ConfigMap", "examples") | {"data": files},
        _named("v1", "Secret", "settings") | {"stringData": {"COLOUR": "blue"}},
        _named(_ALPHA, "CatalogSource", "examples")
        | {"spec": {"sourceType": "configmap", "configMap": "examples"}},
        _named("operators.coreos.com/v1", "OperatorGroup", "own")
        | {"spec": {"targetNamespaces": [NAMESPACE]}},
    ]


def subscription(log_option: str) -> dict[str, Any]:
    """A Subscription that begins with the first version, and sets variables of the operator."""
    entry = {
        "selector": {"matchLabels": {"k8s-app": PACKAGE}},
        "env": [{"name": "ARGS", "value": log_option}],
        "envFrom": [{"secretRef": {"name": "settings"}}],
    }
    spec = {"package": PACKAGE, "channel": "alpha", "startingCSV": FIRST, "config": [entry]}
    return _named(_ALPHA, "Subscription", PACKAGE) | {"spec": spec}


def _service() -> dict[str, Any]:
    spec = {"selector": {"k8s-app": PACKAGE}, "ports": [{"name": "probes", "port": 8081}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "probes"}, "spec": spec}


def _definition() -> dict[str, Any]:
    group = DEFINITION.partition(".")[2]
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": group,
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def _named(api_version: str, kind: str, name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
