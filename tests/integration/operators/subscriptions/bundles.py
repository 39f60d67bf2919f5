"""Small bundles for tests."""

from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions.catalog.bundles import BundleDirectory
from quarterdeck.versions import parse_version

ALL_MODES = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")


def deployment(
    name: str = "engine",
    *,
    labels: Object | None = None,
    env: list[Object] | None = None,
    **pod: Any,
) -> Object:
    """A Deployment of a ClusterServiceVersion, whose pods run on the simulated node."""
    labels = labels or {"app": name}
    container = {
        "name": "main",
        "image": "example.com/engine:1",
        "args": ["-namespaces=$(NAMESPACES)", "$(ARGS)"],
        "env": env
        or [
            {
                "name": "NAMESPACES",
                "valueFrom": {
                    "fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}
                },
            }
        ],
    }
    return {
        "name": name,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"deployment": name}},
            "template": {
                "metadata": {"labels": {"deployment": name, **labels}},
                "spec": {"serviceAccountName": "engine", "containers": [container], **pod},
            },
        },
    }


RULES: list[Object] = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]


def bundle(
    version: str = "1.0.0",
    *,
    package: str = "engine",
    name: str = "",
    replaces: str = "",
    skips: tuple[str, ...] = (),
    deployments: list[Object] | None = None,
    rules: list[Object] | None = None,
    cluster_rules: list[Object] | None = None,
    modes: tuple[str, ...] = ALL_MODES,
    definitions: tuple[Object, ...] = (),
    required: tuple[Object, ...] = (),
    account: str = "engine",
    services: tuple[Object, ...] = (),
    metadata: Object | None = None,
    others: tuple[Object, ...] = (),
) -> BundleDirectory:
    """A bundle with one ClusterServiceVersion."""
    name = name or f"{package}.v{version}"
    install: Object = {
        "deployments": [deployment()] if deployments is None else deployments,
        "permissions": [
            {"serviceAccountName": account, "rules": RULES if rules is None else rules}
        ],
    }
    if cluster_rules:
        install["clusterPermissions"] = [{"serviceAccountName": account, "rules": cluster_rules}]
    owned = [
        {
            "name": one["metadata"]["name"],
            "kind": one["spec"]["names"]["kind"],
            "version": one["spec"]["versions"][0]["name"],
        }
        for one in definitions
    ]
    csv = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {
            "displayName": name,
            "version": version,
            "install": {"strategy": "deployment", "spec": install},
            "installModes": [{"type": mode, "supported": mode in modes} for mode in ALL_MODES],
            "customresourcedefinitions": {"owned": owned, "required": list(required)},
        },
    }
    parsed = parse_version(version)
    assert parsed is not None
    return BundleDirectory(
        directory="",
        package=package,
        channels=("stable",),
        default_channel="stable",
        name=name,
        version=parsed,
        replaces=replaces,
        skips=skips,
        skip_range="",
        objects=(csv, *definitions, *services, *others),
    )


def service(name: str, **metadata: Any) -> Object:
    """A Service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, **metadata},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
    }


def group(name: str = "group", **spec: object) -> Object:
    """An OperatorGroup."""
    return {
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


def definition(group: str, kind: str = "Engine") -> Object:
    """A CustomResourceDefinition."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {
                "kind": kind,
                "plural": plural,
                "listKind": f"{kind}List",
                "singular": kind.lower(),
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
