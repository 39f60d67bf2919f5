"""Refuses writes that would remove the operator's own rights. Pure.

The role of a binding is immutable, so a changed binding is deleted and created again. If the
operator has its rights by that binding, it can no longer create it. The operator also loses rights
by a binding that no longer names it, a role that loses rules, a change of a role that is aggregated
into its role, and the deletion of its own account or namespace. These writes are refused, unless
another binding gives the operator the same rights. `payload.own_needs` has what else it needs.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.kube import LabelSelector
from quarterdeck.payload.model import ObjectIdentity
from quarterdeck.payload.own_needs import stops_operator
from quarterdeck.status.rollout import Failed

RBAC = "rbac.authorization.k8s.io"
BINDINGS = ("ClusterRoleBinding", "RoleBinding")
ROLES = ("ClusterRole", "Role")
_EVERYTHING = ("ClusterRole", "cluster-admin")
_ACCOUNT_PREFIX = "system:serviceaccount:"
_MASTERS = "system:masters"
"""Members of this group may do everything, whatever their roles are."""


class OwnAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's user and groups, as the API server sees them."""

    name: str
    groups: frozenset[str] = frozenset()

    @property
    def service_account(self) -> tuple[str, str] | None:
        """The namespace and name of the ServiceAccount; None for another user."""
        if not self.name.startswith(_ACCOUNT_PREFIX):
            return None
        namespace, _, name = self.name.removeprefix(_ACCOUNT_PREFIX).partition(":")
        return namespace, name


def is_about_rights(identity: ObjectIdentity) -> bool:
    """Whether a change of this object can remove rights."""
    return (identity.group, identity.kind) in {
        *((RBAC, kind) for kind in (*BINDINGS, *ROLES)),
        ("", "ServiceAccount"),
        ("", "Namespace"),
    }


def can_take_rights(identity: ObjectIdentity, live: Object, desired: Object | None) -> bool:
    """Whether the write can remove rights at all; if not, no request for bindings is needed.

    Most changes in a release only add rules or change labels. A deletion always can.
    """
    if not is_about_rights(identity):
        return False
    if desired is None or identity.kind in BINDINGS:
        return True
    return identity.kind in ROLES and (_loses_rules(live, desired) or _loses_label(live, desired))


def stop(identity: ObjectIdentity, desired: Object | None, account: OwnAccount) -> Failed | None:
    """Why a write or a deletion would stop the operator; None if it would not."""
    why = stops_operator(identity, desired, account.service_account)
    if not why:
        return None
    done = "written" if desired else "deleted"
    remedy = "remove it from the release, or make it unmanaged in ClusterVersion's spec.overrides"
    return Failed("OwnOperatorStopped", f"it is not {done}, because {why}; {remedy}")


def refusal(
    identity: ObjectIdentity,
    live: Object,
    desired: Object | None,
    account: OwnAccount,
    bindings: Sequence[Object],
    aggregated: Sequence[Object] = (),
) -> Failed | None:
    """Why a write is refused; None if it is allowed. Without a desired object it is a deletion.

    `bindings` are all RoleBindings and ClusterRoleBindings of the cluster, and `aggregated` the
    ClusterRoles with an aggregationRule.
    """
    lost = _lost(identity, live, desired, account, bindings, aggregated)
    if not lost:
        return None
    return Failed(
        "OwnRightsLost",
        f"it is not {'changed' if desired else 'deleted'}, because {lost}, and what comes next"
        " could not be done; bind the same role to this operator by another name first",
    )


def names_account(binding: Object, account: OwnAccount) -> bool:
    """Whether a binding gives its role to the account, by name or by group."""
    return any(_is(subject, account) for subject in binding.get("subjects") or ())


def _lost(
    identity: ObjectIdentity,
    live: Object,
    desired: Object | None,
    account: OwnAccount,
    bindings: Sequence[Object],
    aggregated: Sequence[Object],
) -> str:
    """What the operator would lose, for people; empty if it loses nothing."""
    own = [one for one in bindings if names_account(one, account)]
    if _MASTERS in account.groups and identity.group == RBAC:
        return ""
    match identity.kind:
        case "ClusterRoleBinding" | "RoleBinding":
            others = [one for one in own if not _is_same(one, live)]
            role = _role(live)
            if (
                names_account(live, account)
                and not (desired and _keeps(desired, live, account))
                and not _covers(others, role, live["metadata"].get("namespace", ""))
            ):
                return f"this operator has the rights of {role[0]} {role[1]} by this binding alone"
        case "ClusterRole" | "Role":
            where = live["metadata"].get("namespace", "")
            roles = [identity.name]
            if identity.kind == "ClusterRole":
                roles += [one["metadata"]["name"] for one in aggregated if _takes_from(one, live)]
            given = [
                one for one in own if any(_gives(one, identity.kind, role, where) for role in roles)
            ]
            others = [one for one in own if one not in given]
            loses = _loses_rules(live, desired) or (len(roles) > 1 and _loses_label(live, desired))
            if given and loses and not _covers(others, _EVERYTHING, ""):
                return "this operator has rights by it that it would lose"
        case "ServiceAccount" if (
            desired is None and (identity.namespace, identity.name) == account.service_account
        ):
            return "this operator runs as it"
        case "Namespace" if desired is None and account.service_account:
            if identity.name == account.service_account[0]:
                return "the account that this operator runs as is in it"
    return ""


def _keeps(desired: Object, live: Object, account: OwnAccount) -> bool:
    return _role(desired) == _role(live) and names_account(desired, account)


def _covers(bindings: Iterable[Object], role: tuple[str, str], namespace: str) -> bool:
    """Whether one of the bindings gives this role in the namespace, or cluster-admin."""
    return any(
        (_is_wide(one) and _role(one) in (role, _EVERYTHING))
        or (one["metadata"].get("namespace", "") == namespace != "" and _role(one) == role)
        for one in bindings
    )


def _gives(binding: Object, kind: str, name: str, namespace: str) -> bool:
    there = binding["metadata"].get("namespace", "")
    return _role(binding) == (kind, name) and (kind == "ClusterRole" or there == namespace)


def _loses_rules(live: Object, desired: Object | None) -> bool:
    """Whether something that the role allows goes; if others give its rules, it may."""
    had, wanted = live.get("rules") or (), desired or {}
    if "aggregationRule" in wanted:
        return bool(had) and wanted["aggregationRule"] != live.get("aggregationRule")
    kept = wanted.get("rules") or ()
    return not all(any(_allows(rule, wider) for wider in kept) for rule in had)


def _allows(rule: Any, wider: Any) -> bool:
    """Whether one rule has all that another one has."""
    for field in ("apiGroups", "resources", "verbs", "nonResourceURLs"):
        has = set(wider.get(field) or ())
        if not (has >= set(rule.get(field) or ()) or "*" in has):
            return False
    names = set(wider.get("resourceNames") or ())
    return not names or (bool(rule.get("resourceNames")) and names >= set(rule["resourceNames"]))


def _loses_label(live: Object, desired: Object | None) -> bool:
    """Whether a label goes, by which an aggregated role may have found this one."""
    kept = ((desired or {}).get("metadata") or {}).get("labels") or {}
    labels = live["metadata"].get("labels") or {}
    return any(kept.get(name) != value for name, value in labels.items())


def _takes_from(aggregated: Object, role: Object) -> bool:
    """Whether the one role has the rules of the other one."""
    rule = aggregated.get("aggregationRule") or {}
    labels = role["metadata"].get("labels") or {}
    return any(
        msgspec.convert(selector, LabelSelector).matches(labels)
        for selector in rule.get("clusterRoleSelectors") or ()
    )


def _is(subject: Any, account: OwnAccount) -> bool:
    name, kind = subject.get("name"), subject.get("kind")
    if kind == "ServiceAccount":
        return (subject.get("namespace", ""), name) == account.service_account
    return name == account.name if kind == "User" else name in account.groups


def _is_same(one: Object, other: Object) -> bool:
    return bool(one["metadata"].get("uid") == other["metadata"].get("uid"))


def _is_wide(binding: Object) -> bool:
    return not binding["metadata"].get("namespace")


def _role(binding: Object) -> tuple[str, str]:
    ref = binding.get("roleRef") or {}
    return str(ref.get("kind")), str(ref.get("name"))
