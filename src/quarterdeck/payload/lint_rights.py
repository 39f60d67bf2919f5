"""Lint: manifests that would take away the cluster version operator's own rights.

The operator refuses such a manifest during an update, and the update stops there; lint reports it
before the release is made.
"""

from collections.abc import Iterator
from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.payload import annotations as known
from quarterdeck.payload.findings import Finding, error
from quarterdeck.payload.model import Manifest, ObjectIdentity, Payload
from quarterdeck.payload.own_needs import stops_operator
from quarterdeck.payload.variants import ClusterVariants

NAMESPACE, ACCOUNT = "openshift-cluster-version", "cluster-version-operator"
ROLE = "cluster-admin"
_RBAC = "rbac.authorization.k8s.io"
_OWN_ROLE = ObjectIdentity(_RBAC, "ClusterRole", "", ROLE)


def own_rights(payload: Payload, variants: ClusterVariants) -> Iterator[Finding]:
    """Manifests that delete the operator's account or binding, or change its role."""
    bindings = [one for one in payload.manifests if _binds_operator(one)]
    well = [one for one in bindings if _role(one) == ROLE and not _is_deleted(one)]
    for manifest in payload.manifests:
        desired = None if _is_deleted(manifest) else manifest.object
        if why := stops_operator(manifest.identity, desired, (NAMESPACE, ACCOUNT)):
            yield _stopped(manifest, why)
        elif manifest.identity == _OWN_ROLE and desired and not _allows_everything(desired):
            yield _finding(manifest, ("rules",), "")
        elif _is_deleted(manifest):
            if manifest in bindings or _is_home(manifest.identity):
                yield _finding(manifest, ("metadata", "annotations", known.DELETE), "true")
        elif manifest in bindings and _role(manifest) != ROLE:
            covered = any(variants.of(other) & variants.of(manifest) for other in well)
            if not covered:
                yield _finding(manifest, ("roleRef", "name"), _role(manifest))


def _finding(manifest: Manifest, path: tuple[str, ...], value: str) -> Finding:
    return error(
        "own-rights",
        manifest,
        path,
        value,
        "the cluster version operator would lose the rights by which it applies a release",
        f"keep a ClusterRoleBinding of {NAMESPACE}/{ACCOUNT} to {ROLE}",
    )


def _stopped(manifest: Manifest, why: str) -> Finding:
    return error(
        "own-operator",
        manifest,
        ("metadata", "name"),
        manifest.identity.name,
        f"the cluster version operator could not continue: {why}",
        "take it out of the release",
    )


def _allows_everything(role: Object) -> bool:
    rules: Any = role.get("rules")
    return any(
        isinstance(rule, dict)
        and all(rule.get(field) == ["*"] for field in ("apiGroups", "resources", "verbs"))
        for rule in (rules if isinstance(rules, list) else ())
    )


def _is_home(identity: ObjectIdentity) -> bool:
    return identity in (
        ("", "Namespace", "", NAMESPACE),
        ("", "ServiceAccount", NAMESPACE, ACCOUNT),
    )


def _is_deleted(manifest: Manifest) -> bool:
    return manifest.annotations.get(known.DELETE) == "true"


def _binds_operator(manifest: Manifest) -> bool:
    subjects: Any = manifest.object.get("subjects")
    if (manifest.identity.group, manifest.identity.kind) != (_RBAC, "ClusterRoleBinding"):
        return False
    account = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": ACCOUNT}
    return any(
        isinstance(one, dict) and account.items() <= one.items()
        for one in (subjects if isinstance(subjects, list) else ())
    )


def _role(manifest: Manifest) -> str:
    ref = manifest.object.get("roleRef")
    return str(ref.get("name")) if isinstance(ref, dict) else ""
