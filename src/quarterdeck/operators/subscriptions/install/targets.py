"""The target namespaces of the operators in a namespace, by its OperatorGroups."""

from quarterdeck.api.meta import NAMESPACES
from quarterdeck.api.operators_v1 import OPERATOR_GROUPS, OperatorGroup
from quarterdeck.controller import Manager, Objects
from quarterdeck.operators.subscriptions.groups import GroupFault, Target, target_of


class Targets:
    """Finds the target of each namespace."""

    def __init__(self, manager: Manager, groups: Objects[OperatorGroup]) -> None:
        self._client = manager.replica_client
        self.groups = groups
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
        labels = {
            one["metadata"]["name"]: one["metadata"].get("labels") or {}
            for one in self.namespaces.all()
        }
        return target_of(namespace, self.groups.by_index("namespace", namespace), labels)


def _states(groups: list[OperatorGroup]) -> set[tuple[str, int]]:
    """What identifies the groups and their specs."""
    return {(one.metadata.uid, one.metadata.generation) for one in groups}
