"""The target namespaces of the operators in a namespace, by its OperatorGroups."""

from collections.abc import Collection, Sequence

from quarterdeck.api.meta import NAMESPACES
from quarterdeck.api.operators_v1 import OPERATOR_GROUPS, OperatorGroup
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion, InstallPlan
from quarterdeck.controller import Manager, Objects
from quarterdeck.operators.subscriptions.groups import GroupFault, Target, target_of


class Targets:
    """Finds the target of each namespace."""

    def __init__(
        self,
        manager: Manager,
        groups: Objects[OperatorGroup],
        csvs: Objects[ClusterServiceVersion],
        plans: Objects[InstallPlan],
    ) -> None:
        self._client = manager.replica_client
        self.groups = groups
        self._csvs = csvs
        self._plans = plans
        self.namespaces = manager.objects(NAMESPACES)

    async def confirmed_target(self, namespace: str) -> Target | GroupFault | None:
        """The target, if the OperatorGroups that were seen last are those that the server has now.

        None otherwise; the change, when it is seen, wakes whoever watches the groups. For a first
        write: a watch may be late, and without its OperatorGroup an operator would be installed
        with our rights instead of those of the group's account.
        """
        found = await self._client.list(OPERATOR_GROUPS, namespace)
        if found.unreadable:
            names = ", ".join(sorted(key.name for key in found.unreadable))
            message = f"the OperatorGroup {names} cannot be read; correct it, or delete it"
            return GroupFault("InvalidOperatorGroup", message)
        seen = self.groups.by_index("namespace", namespace)
        return self.target(namespace) if _states(found.items) == _states(seen) else None

    def target(self, namespace: str) -> Target | GroupFault:
        """The target by the OperatorGroups that were seen last."""
        groups = self.groups.by_index("namespace", namespace)
        # Each of the two is for all objects of its kind, and most namespaces need neither.
        selects = any(one.spec.selector is not None for one in groups)
        labels = self._namespace_labels() if selects else {}
        accounts = self._accounts(namespace) if not groups else ()
        return target_of(namespace, groups, labels, accounts)

    def _namespace_labels(self) -> dict[str, dict[str, str]]:
        return {
            one["metadata"]["name"]: one["metadata"].get("labels") or {}
            for one in self.namespaces.all()
        }

    def _accounts(self, namespace: str) -> Collection[str]:
        csvs = self._csvs.by_index("account", namespace)
        plans = self._plans.by_index("account", namespace)
        if plans:  # Whether one counts depends on all versions.
            csvs = self._csvs.by_index("namespace", namespace)
        return accounts_of(csvs, plans)


def accounts_of(
    csvs: Sequence[ClusterServiceVersion], plans: Sequence[InstallPlan]
) -> frozenset[str]:
    """The accounts as which something was installed in a namespace, or was to be.

    A plan counts until its version says so itself.
    """
    fresh = {one.metadata.name for one in csvs if one.status.phase is None}
    open_plans = [
        one
        for one in plans
        if one.status.phase != "Complete"
        or not fresh.isdisjoint(one.spec.cluster_service_version_names)
    ]
    found = [one.status.installed_as for one in csvs]
    found += [one.status.installed_as for one in open_plans]
    return frozenset(account for account in found if account)


def _states(groups: list[OperatorGroup]) -> set[tuple[str, int]]:
    """What identifies the groups and their specs."""
    return {(one.metadata.uid, one.metadata.generation) for one in groups}
