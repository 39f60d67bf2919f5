"""The namespaces that the operators of a namespace watch, by its OperatorGroup. Pure."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from quarterdeck.api.operators_v1 import OperatorGroup
from quarterdeck.api.operators_v1alpha1 import InstallMode
from quarterdeck.controller import InvalidSpec
from quarterdeck.controller.selection import selector_in
from quarterdeck.operators.subscriptions.names import NAME_REMEDY, is_object_name


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The namespaces that an operator watches."""

    namespace: str
    """The namespace in which it runs."""
    namespaces: tuple[str, ...]
    """Empty for all namespaces."""
    group: str = ""
    """The OperatorGroup; empty if there is none."""
    account: str = ""
    """The ServiceAccount as which it is installed; empty for the installer itself."""

    @property
    def is_global(self) -> bool:
        """Whether the operator watches all namespaces."""
        return not self.namespaces

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations by which the operator's pods know their target."""
        return {
            "olm.targetNamespaces": ",".join(self.namespaces),
            "olm.operatorNamespace": self.namespace,
            "olm.operatorGroup": self.group,
        }

    @property
    def modes(self) -> tuple[str, ...]:
        """The install modes that the operator has to support."""
        if self.is_global:
            return ("AllNamespaces",)
        own = ("OwnNamespace",) if self.namespace in self.namespaces else ()
        if len(self.namespaces) > 1:
            return ("MultiNamespace", *own)
        return own or ("SingleNamespace",)


class GroupFault(msgspec.Struct, frozen=True):
    """Why operators cannot be installed with the OperatorGroups of a namespace."""

    reason: str
    message: str


def target_of(
    namespace: str,
    groups: Sequence[OperatorGroup],
    labels: Mapping[str, Mapping[str, str]],
    accounts: Collection[str] = (),
) -> Target | GroupFault:
    """The target of the operators in a namespace; `labels` are those of all namespaces.

    `accounts` are those as which something was installed in the namespace until now.
    """
    if len(groups) > 1:
        names = ", ".join(sorted(group.metadata.name for group in groups))
        message = f"the namespace has several OperatorGroups: {names}; delete all but one"
        return GroupFault("TooManyOperatorGroups", message)
    if not groups and accounts:
        # It may be gone for a moment only, and what the account was refused would be granted.
        message = (
            f"operators were installed as the ServiceAccount {min(accounts)}, and there is no "
            "OperatorGroup; create it again, or one without serviceAccountName"
        )
        return GroupFault("NoOperatorGroup", message)
    if not groups:
        return Target(namespace=namespace, namespaces=(namespace,))
    (group,) = groups
    account = group.spec.service_account_name or ""
    if account and not is_object_name(account):
        message = (
            f"OperatorGroup {group.metadata.name}: spec.serviceAccountName: {account[:100]!r} "
            f"is no name; {NAME_REMEDY}"
        )
        return GroupFault("InvalidOperatorGroup", message)
    try:
        namespaces = targets(group, labels)
    except InvalidSpec as error:
        return GroupFault("InvalidOperatorGroup", f"OperatorGroup {group.metadata.name}: {error}")
    if namespaces == ():
        message = f"OperatorGroup {group.metadata.name} selects no namespace; label one"
        return GroupFault("NoTargetNamespaces", message)
    return Target(
        namespace=namespace,
        namespaces=namespaces or (),
        group=group.metadata.name,
        account=account,
    )


def targets(
    group: OperatorGroup, labels: Mapping[str, Mapping[str, str]]
) -> tuple[str, ...] | None:
    """The target namespaces of a group; None for all namespaces."""
    if group.spec.target_namespaces:
        return tuple(sorted(set(group.spec.target_namespaces)))
    selector = selector_in("spec.selector", group.spec.selector)
    if selector is None or not str(selector):
        return None
    return tuple(sorted(name for name, found in labels.items() if selector.matches(found)))


def mode_fault(target: Target, modes: Sequence[InstallMode]) -> GroupFault | None:
    """Why the operator does not work with the target; None if it does."""
    supported = {mode.type for mode in modes if mode.supported}
    missing = [mode for mode in target.modes if mode not in supported]
    if not missing:
        return None
    watched = ", ".join(target.namespaces) or "all namespaces"
    known = ", ".join(sorted(supported)) or "none"
    return GroupFault(
        "UnsupportedOperatorGroup",
        f"the operator cannot watch {watched}: it does not support {', '.join(missing)} "
        f"(it supports {known}); change the OperatorGroup",
    )
