"""The catalog and the Subscription of a local cluster: our own bundles, with one config entry.

The catalog is in the operator's own namespace, so that every namespace can use it.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import quarterdeck
from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import CATALOG_SOURCES, SUBSCRIPTIONS
from quarterdeck.operators.subscriptions import OPERATOR
from quarterdeck.operators.subscriptions.catalog.bundles import (
    BundleDirectory,
    bundle_directories,
    catalog_entries,
    read_bundle,
)

CATALOG = "examples"
NAMESPACE = "sample-subscription"
"""The namespace of the Subscription, and of the operator that it installs."""
PACKAGE = "sample-operator"


def examples_directory() -> Path:
    """The bundles of the documentation: inside an installed package, or in `docs` of a clone."""
    package = Path(quarterdeck.__file__).parent
    installed = package / "examples" / "bundles"
    in_clone = package.parents[1] / "docs" / "examples" / "bundles"
    return installed if installed.is_dir() else in_clone


def local_objects(_ports: Mapping[str, int]) -> list[Object]:
    """The catalog with our own bundles, and a Subscription that raises the operator's log level."""
    read = [read_bundle(directory) for directory in bundle_directories([examples_directory()])]
    bundles = [one for one in read if isinstance(one, BundleDirectory)]
    files = {
        name.rpartition("/")[2]: "".join(f"{json.dumps(entry)}\n" for entry in entries)
        for name, entries in catalog_entries(bundles).items()
    }
    home = {"name": CATALOG, "namespace": OPERATOR.namespace}
    entry = {
        "selector": {"matchLabels": {"k8s-app": PACKAGE}},
        "env": [{"name": "ARGS", "value": "-v=4"}],
    }
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": home, "data": files},
        {
            "apiVersion": CATALOG_SOURCES.api_version,
            "kind": CATALOG_SOURCES.kind,
            "metadata": home,
            "spec": {
                "sourceType": "configmap",
                "configMap": CATALOG,
                "displayName": "Examples of the documentation",
            },
        },
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": SUBSCRIPTIONS.api_version,
            "kind": SUBSCRIPTIONS.kind,
            "metadata": {"name": PACKAGE, "namespace": NAMESPACE},
            "spec": {"package": PACKAGE, "channel": "alpha", "config": [entry]},
        },
    ]
