"""Finds manifests that would stop the cluster version operator itself. Pure.

Its rights are not checked here, because they depend on the bindings of the cluster. The operator
needs ClusterVersion and its definition, which hold the release that it applies; its Deployment,
account and Lease; and no webhook that must approve its Lease or the status of ClusterVersion: while
such a webhook does not answer, no replica leads, or no other release can be begun, so nobody starts
or removes the webhook. An admission policy that does the same by an expression is not found.
"""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.kube.selector import LabelSelector
from quarterdeck.payload.model import ObjectIdentity

Account = tuple[str, str]
"""Namespace and name of the operator's account; its Deployment and Lease have the same."""

_VERSION = ObjectIdentity("config.openshift.io", "ClusterVersion", "", "version")
_DEFINITION = ObjectIdentity(
    "apiextensions.k8s.io", "CustomResourceDefinition", "", "clusterversions.config.openshift.io"
)
_WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def can_stop_operator(identity: ObjectIdentity, desired: Object | None) -> bool:
    """Whether such a manifest can stop any operator; if not, the account is not needed."""
    match identity.group, identity.kind:
        case "apps", "Deployment":
            return desired is None or _below(desired, "spec").get("replicas") == 0
        case "", "ServiceAccount":
            return desired is not None and desired.get("automountServiceAccountToken") is False
        case "coordination.k8s.io", "Lease":
            return True
        case "admissionregistration.k8s.io", kind:
            return kind in _WEBHOOKS
        case _:
            return identity._replace(namespace="") in (_VERSION, _DEFINITION)


def stops_operator(
    identity: ObjectIdentity, desired: Object | None, account: Account | None
) -> str:
    """How a manifest would stop the operator, for people; empty if it would not.

    `desired` is None if the object is deleted; `account` is None for an operator that runs as a
    user and not from its Deployment.
    """
    match identity:
        case ObjectIdentity("config.openshift.io", "ClusterVersion", _, "version"):
            return "" if desired else "it remembers which release this cluster runs"
        case ObjectIdentity(_DEFINITION.group, _DEFINITION.kind, _, _DEFINITION.name):
            return _definition(desired)
    if account is None:
        return ""
    is_own = (identity.namespace, identity.name) == account
    match identity.kind:
        case "Deployment" if is_own and can_stop_operator(identity, desired):
            return "this operator runs by it"
        case "ServiceAccount" if is_own and can_stop_operator(identity, desired):
            return "the operator's next pods would have no token"
        case "Lease" if is_own:
            return "it says which replica of this operator leads"
        case _ if identity.kind in _WEBHOOKS and desired:
            return _blocked(desired, account[0])
    return ""


def _definition(desired: Object | None) -> str:
    """ClusterVersions are to be read and their status written as now, its history above all."""
    if desired is None:
        return "every ClusterVersion would go with it, and what the cluster runs be forgotten"
    conversion = _below(desired, "spec", "conversion")
    if conversion.get("strategy") == "Webhook":
        return "no ClusterVersion could be read while the webhook of its conversion is away"
    versions: Any = _below(desired, "spec").get("versions")
    found = [
        version
        for version in (versions if isinstance(versions, list) else ())
        if isinstance(version, dict) and version.get("name") == "v1" and version.get("served")
    ]
    if not found:
        return "the operator could not read ClusterVersion, because v1 is not served"
    if "status" not in _below(found[0], "subresources"):
        return "the operator could not write ClusterVersion's status, which is no subresource"
    schema = _below(found[0], "schema", "openAPIV3Schema")
    for field in ("status", "history"):
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return ""
        schema = _below(schema, "properties", field)
        if not schema:
            return "the server would drop status.history, by which the operator goes on"
    return ""


def _blocked(configuration: Object, namespace: str) -> str:
    """Which of the operator's writes wait for a webhook, for people; empty if none does."""
    labels = {"kubernetes.io/metadata.name": namespace}
    of_lease, of_status = [], []
    for hook in _needed(configuration):
        name = str(hook.get("name"))
        rules: Any = hook.get("rules") or ()
        # No selector of namespaces leaves out an object that is in none.
        if any(_is_about(rule, _STATUS, "Namespaced") for rule in rules):
            of_status.append(name)
        if _selects(hook.get("namespaceSelector"), labels) and any(
            _is_about(rule, _LEASES, "Cluster") for rule in rules
        ):
            of_lease.append(name)
    if of_lease:
        return (
            f"while {', '.join(of_lease)} does not answer, the operator's Lease cannot be renewed,"
            f" and nobody brings it up; leave out namespace {namespace} by its namespaceSelector"
        )
    if of_status:
        return (
            f"while {', '.join(of_status)} does not answer, the status of ClusterVersion cannot be"
            " written, and no other release be begun; leave out clusterversions/status by its rules"
        )
    return ""


def _needed(configuration: Object) -> Iterator[Object]:
    """The webhooks without whose consent nothing is written that they are about."""
    hooks: Any = configuration.get("webhooks")
    for hook in hooks if isinstance(hooks, list) else ():
        if (
            isinstance(hook, dict)
            and hook.get("failurePolicy", "Fail") == "Fail"
            and not hook.get("matchConditions")
            and _selects(hook.get("objectSelector"), {})
        ):
            yield hook


_LEASES = ("coordination.k8s.io", frozenset({"*", "leases", "*/*", "leases/*"}))
_STATUS = (
    "config.openshift.io",
    # Not `*`, which has no subresources.
    frozenset({"*/*", "*/status", "clusterversions/*", "clusterversions/status"}),
)


def _is_about(rule: Any, what: tuple[str, frozenset[str]], but: str) -> bool:
    """Whether a webhook's rule is about updates of a group's resources, in any scope but one."""
    group, resources = what

    def has(field: str, wanted: Collection[str]) -> bool:
        found = rule.get(field)
        return isinstance(found, list) and any(str(one) in wanted for one in found)

    return (
        isinstance(rule, dict)
        and rule.get("scope", "*") != but
        and has("operations", ("*", "UPDATE"))
        and has("apiGroups", ("*", group))
        and has("resources", resources)
    )


def _selects(selector: Any, labels: dict[str, str]) -> bool:
    try:
        return msgspec.convert(selector or {}, LabelSelector).matches(labels)
    except msgspec.ValidationError:
        return False  # the server refuses it


def _below(obj: Object | None, *path: str) -> Object:
    found: Any = obj
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
