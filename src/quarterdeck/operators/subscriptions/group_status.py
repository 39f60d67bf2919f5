"""The controller of OperatorGroups: writes the target namespaces into their status."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from quarterdeck.api.conditions import Condition
from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1 import OperatorGroup, OperatorGroupStatus
from quarterdeck.controller import (
    DONE,
    Controller,
    InvalidSpec,
    Manager,
    Result,
    Watch,
)
from quarterdeck.controller.metadata import key_of
from quarterdeck.operators.subscriptions.announce import faults_changed, record
from quarterdeck.operators.subscriptions.groups import targets
from quarterdeck.operators.subscriptions.install.targets import Targets
from quarterdeck.status import set_condition

FAULTS = ("MultipleOperatorGroups", "SelectorInvalid")


def add_group_status(manager: Manager, seen: Targets) -> None:
    """Add the controller of OperatorGroups."""
    groups, namespaces = seen.groups, seen.namespaces

    def siblings(group: OperatorGroup) -> Iterable[Key]:
        return [key_of(one) for one in groups.by_index("namespace", group.metadata.namespace)]

    def selecting(_namespace: Object) -> Iterable[Key]:
        return [key_of(one) for one in groups.all() if one.spec.selector is not None]

    async def reconcile(key: Key) -> Result:
        group = groups.get(key)
        if group is None or group.metadata.deletion_timestamp is not None:
            return DONE
        labels = {
            one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in namespaces.all()
        }
        same = groups.by_index("namespace", key.namespace)
        try:
            selected = targets(group, labels)
            found: Sequence[str] | str = ("",) if selected is None else selected
        except InvalidSpec as error:
            found = str(error)
        status = desired_status(group, found, len(same), manager.now())
        if await groups.set_status(group, status):
            changes = faults_changed(_faults(group.status), _faults(status))
            record(manager.events, group, changes, "Reconcile")
        return DONE

    watches = [Watch(groups, siblings), Watch(groups), Watch(namespaces, selecting)]
    manager.add(Controller("operator-group", reconcile, watches))


def _faults(status: OperatorGroupStatus) -> list[Condition]:
    return [one for one in status.conditions if one.type in FAULTS and one.status == "True"]


def desired_status(
    group: OperatorGroup, found: Sequence[str] | str, count: int, now: datetime
) -> OperatorGroupStatus:
    """The status of a group with these target namespaces, or with why they are not known."""
    several = count > 1
    multiple = Condition(
        type="MultipleOperatorGroups",
        status="True" if several else "False",
        reason="MultipleOperatorGroupsFound" if several else "OneOperatorGroup",
        message="the namespace has several OperatorGroups; delete all but one" if several else "",
        last_transition_time=now,
    )
    fault = found if isinstance(found, str) else ""
    valid = Condition(
        type="SelectorInvalid",
        status="True" if fault else "False",
        reason="InvalidSelector" if fault else "AsExpected",
        message=fault,
        last_transition_time=now,
    )
    conditions = set_condition(group.status.conditions, multiple, now)
    conditions = set_condition(conditions, valid, now)
    names = () if isinstance(found, str) else tuple(found)
    same = names == group.status.namespaces
    return OperatorGroupStatus(
        namespaces=names,
        last_updated=group.status.last_updated if same else now.replace(microsecond=0),
        conditions=conditions,
    )
