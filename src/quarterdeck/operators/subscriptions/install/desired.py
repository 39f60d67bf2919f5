"""What a ClusterServiceVersion needs in the cluster: accounts, roles, Deployments. Pure."""

from collections.abc import Iterable, Iterator

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.nulls import without_nulls
from quarterdeck.api.operators_v1alpha1 import (
    ClusterServiceVersion,
    NamedDeployment,
    Permissions,
)
from quarterdeck.controller.metadata import owned_by
from quarterdeck.operators.subscriptions.catalog.installable import MAX_DEPLOYMENTS
from quarterdeck.operators.subscriptions.config.merge import MergedDeployment
from quarterdeck.operators.subscriptions.groups import Target
from quarterdeck.operators.subscriptions.install.applied import with_record
from quarterdeck.operators.subscriptions.names import (
    OWNER,
    owner_labels,
    short_hash,
    without_reserved,
)

RBAC = "rbac.authorization.k8s.io"
DEFAULT_ACCOUNT = "default"
"""Every namespace has it; it belongs to nobody."""


class Roles(msgspec.Struct, frozen=True, kw_only=True):
    """The rights of an operator."""

    roles: tuple[Object, ...] = ()
    bindings: tuple[Object, ...] = ()
    cluster_roles: tuple[Object, ...] = ()
    cluster_bindings: tuple[Object, ...] = ()


def named_deployments(csv: ClusterServiceVersion) -> tuple[NamedDeployment, ...]:
    """The Deployments of a ClusterServiceVersion, up to the limit; with more, none is applied."""
    return csv.spec.install.spec.deployments[:MAX_DEPLOYMENTS] if csv.spec.install.spec else ()


def desired_accounts(csv: ClusterServiceVersion) -> list[Object]:
    """The ServiceAccounts to which the operator's rights belong."""
    names = {one.service_account_name for one in (*_own(csv), *_cluster(csv))}
    return [
        {"metadata": _metadata(csv, name, csv.metadata.namespace)}
        for name in sorted(names - {DEFAULT_ACCOUNT, ""})
    ]


def desired_roles(csv: ClusterServiceVersion, target: Target) -> Roles:
    """The rights of the operator, in the namespaces that it watches and in the cluster.

    An operator that watches all namespaces gets the rights of a namespace in the whole cluster.
    """
    wide = [*_cluster(csv), *(_own(csv) if target.is_global else ())]
    cluster = list(_pairs(csv, wide, ""))
    local = [
        pair
        for namespace in target.namespaces
        for pair in _pairs(csv, () if target.is_global else _own(csv), namespace)
    ]
    return Roles(
        roles=tuple(role for role, _ in local),
        bindings=tuple(binding for _, binding in local),
        cluster_roles=tuple(role for role, _ in cluster),
        cluster_bindings=tuple(binding for _, binding in cluster),
    )


def desired_deployment(csv: ClusterServiceVersion, merged: MergedDeployment) -> Object:
    """The Deployment, with the configuration and its owner."""
    metadata = _metadata(csv, merged.name, csv.metadata.namespace)
    own = merged.deployment["metadata"]
    metadata["labels"] = {**without_reserved(own.get("labels")), **metadata["labels"]}
    annotations = without_reserved(own.get("annotations"))
    metadata["annotations"] = {**annotations, **metadata["annotations"]}
    return with_record({"metadata": metadata, "spec": without_nulls(merged.deployment["spec"])})


def desired_service(csv: ClusterServiceVersion, service: Object) -> Object:
    """A Service of the bundle, with its owner."""
    metadata = _metadata(csv, service["metadata"]["name"], csv.metadata.namespace)
    own = service["metadata"]
    for part in ("labels", "annotations"):
        metadata[part] = {**without_reserved(own.get(part)), **metadata[part]}
    return {"metadata": metadata, "spec": without_nulls(service.get("spec") or {})}


def _own(csv: ClusterServiceVersion) -> tuple[Permissions, ...]:
    return csv.spec.install.spec.permissions if csv.spec.install.spec else ()


def _cluster(csv: ClusterServiceVersion) -> tuple[Permissions, ...]:
    return csv.spec.install.spec.cluster_permissions if csv.spec.install.spec else ()


def _pairs(
    csv: ClusterServiceVersion, permissions: Iterable[Permissions], namespace: str
) -> Iterator[tuple[Object, Object]]:
    """A role and its binding for each permission, each once."""
    seen: set[str] = set()
    for one in permissions:
        rules = [without_nulls(rule) for rule in one.rules]
        # With the namespace: the same operator can be in two namespaces, and both get roles of the
        # cluster, or in the same third namespace.
        identity = [csv.metadata.namespace, one.service_account_name, rules]
        name = f"{csv.metadata.name}-{short_hash(identity)}"
        if name in seen:
            continue
        seen.add(name)
        kind = "Role" if namespace else "ClusterRole"
        subject = {
            "kind": "ServiceAccount",
            "name": one.service_account_name,
            "namespace": csv.metadata.namespace,
        }
        yield (
            {"metadata": _metadata(csv, name, namespace), "rules": rules},
            {
                "metadata": _metadata(csv, name, namespace),
                "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
                "subjects": [subject],
            },
        )


def _metadata(csv: ClusterServiceVersion, name: str, namespace: str) -> Object:
    """Name, labels and owner. An owner reference works only within the namespace."""
    metadata: Object = {
        "name": name,
        "labels": owner_labels(csv),
        "annotations": {OWNER: f"{csv.metadata.namespace}/{csv.metadata.name}"},
    }
    if namespace:
        metadata["namespace"] = namespace
    if namespace == csv.metadata.namespace:
        metadata |= owned_by(csv)
    return metadata
