"""Catalogs for tests."""

import base64
import json
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions.catalog.load import load
from quarterdeck.operators.subscriptions.catalog.model import LoadedCatalog


def csv(name: str, version: str, **spec: Any) -> Object:
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name},
        "spec": {
            "displayName": name,
            "version": version,
            "install": {"strategy": "deployment", "spec": {"deployments": []}},
            **spec,
        },
    }


def bundle(name: str, version: str, *objects: Object, package: str = "p", **spec: Any) -> Object:
    made = [*objects, csv(name, version, **spec)]
    return {
        "schema": "olm.bundle",
        "package": package,
        "name": name,
        "properties": [
            {"type": "olm.package", "value": {"packageName": package, "version": version}},
            *({"type": "olm.bundle.object", "value": {"data": encoded(one)}} for one in made),
        ],
    }


def encoded(obj: Object) -> str:
    return base64.b64encode(json.dumps(obj).encode()).decode()


def package(name: str = "p", channel: str = "c") -> Object:
    return {"schema": "olm.package", "name": name, "defaultChannel": channel}


def channel(*entries: Object, name: str = "c", package: str = "p") -> Object:
    return {"schema": "olm.channel", "package": package, "name": name, "entries": list(entries)}


def entry(name: str, replaces: str = "", **more: Any) -> Object:
    return {"name": name, **({"replaces": replaces} if replaces else {}), **more}


def loaded(*entries: Object) -> LoadedCatalog:
    return load([("catalog.json", "\n".join(map(json.dumps, entries)))])
