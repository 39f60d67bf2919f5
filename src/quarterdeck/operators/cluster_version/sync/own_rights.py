"""Refuses writes that would remove the operator's own rights. Pure.

The role of a binding is immutable, so a changed binding is deleted and created again. If the
operator has its rights by that binding, it can no longer create it. The operator also loses rights
by a binding that no longer names it, a role that loses rules, and the deletion of its own account
or namespace. These writes are refused, unless another binding gives the operator the same rights.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.payload.model import ObjectIdentity
from quarterdeck.status.rollout import Failed

RBAC = "rbac.authorization.k8s.io"
BINDINGS = ("ClusterRoleBinding", "RoleBinding")
ROLES = ("ClusterRole", "Role")
_EVERYTHING = ("ClusterRole", "cluster-admin")
_ACCOUNT_PREFIX = "system:serviceaccount:"


class Account(msgspec.Struct, frozen=True, kw_only=True):
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
    return identity.kind in ROLES and _loses_rules(live, desired)


def refusal(
    identity: ObjectIdentity,
    live: Object,
    desired: Object | None,
    account: Account,
    bindings: Sequence[Object],
) -> Failed | None:
    """Why a write is refused; None if it is allowed. Without a desired object it is a deletion.

    `bindings` are all RoleBindings and ClusterRoleBindings of the cluster.
    """
    lost = _lost(identity, live, desired, account, bindings)
    if not lost:
        return None
    return Failed(
        "OwnRightsLost",
        f"it is not {'changed' if desired else 'deleted'}, because {lost}, and what comes next"
        " could not be done; bind the same role to this operator by another name first",
    )


def names_account(binding: Object, account: Account) -> bool:
    """Whether a binding gives its role to the account, by name or by group."""
    return any(_is(subject, account) for subject in binding.get("subjects") or ())


def _lost(
    identity: ObjectIdentity,
    live: Object,
    desired: Object | None,
    account: Account,
    bindings: Sequence[Object],
) -> str:
    """What the operator would lose, for people; empty if it loses nothing."""
    own = [one for one in bindings if names_account(one, account)]
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
            given = [one for one in own if _gives(one, identity.kind, identity.name, where)]
            others = [one for one in own if one not in given]
            if given and _loses_rules(live, desired) and not _covers(others, _EVERYTHING, ""):
                return "this operator has rights by it that it would lose"
        case "ServiceAccount" if (
            desired is None and (identity.namespace, identity.name) == account.service_account
        ):
            return "this operator runs as it"
        case "Namespace" if desired is None and account.service_account:
            if identity.name == account.service_account[0]:
                return "the account that this operator runs as is in it"
    return ""


def _keeps(desired: Object, live: Object, account: Account) -> bool:
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
    """Whether the role loses a rule; the rules of an aggregated role come from other roles."""
    if desired is not None and "aggregationRule" in desired:
        return False
    kept = (desired or {}).get("rules") or ()
    return any(rule not in kept for rule in live.get("rules") or ())


def _is(subject: Any, account: Account) -> bool:
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
