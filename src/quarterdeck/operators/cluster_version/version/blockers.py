"""What blocks an update to another minor version: the reasons why Upgradeable is not True.

An operator's Upgradeable=Unknown does not block by itself. A stale operator blocks, whatever it
last reported.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from quarterdeck.api.config_v1 import ClusterOperator, ComponentOverride
from quarterdeck.feature_gates import blocks_minor_updates
from quarterdeck.status import find_condition
from quarterdeck.status.staleness import lacks_report
from quarterdeck.status.staleness_marks import original


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """One reason to stay within the minor version."""

    reason: str
    """One CamelCase word for programs."""
    message: str
    """What blocks, and the remedy, for people."""


def blockers(
    operators: Iterable[ClusterOperator],
    overrides: Iterable[ComponentOverride],
    feature_set: str,
) -> tuple[Blocker, ...]:
    """Everything that blocks a minor update, in a stable order."""
    return (
        *feature_set_blockers(feature_set),
        *_of_overrides(overrides),
        *_of_operators(operators),
    )


def summary(found: Sequence[Blocker]) -> Blocker:
    """Several blockers as one reason and one message."""
    if len(found) == 1:
        return found[0]
    reasons = {blocker.reason for blocker in found}
    return Blocker(
        reason=reasons.pop() if len(reasons) == 1 else "MultipleReasons",
        message="\n".join(f"* {blocker.message}" for blocker in found),
    )


def feature_set_blockers(feature_set: str) -> Iterator[Blocker]:
    """The blocker of a feature set that cannot be left again; none for another feature set."""
    if blocks_minor_updates(feature_set):
        yield Blocker(
            reason="FeatureSetNotUpgradeable",
            message=f"FeatureGate cluster has spec.featureSet {feature_set}, which cannot be left"
            " again: this cluster stays within its minor version",
        )


def _of_overrides(overrides: Iterable[ComponentOverride]) -> Iterator[Blocker]:
    unmanaged = sorted(_name(entry) for entry in overrides if entry.unmanaged)
    if unmanaged:
        yield Blocker(
            reason="ClusterVersionOverridesSet",
            message=f"spec.overrides has {', '.join(unmanaged)} unmanaged, which no update"
            " reaches: remove the entries before a minor update",
        )


def _of_operators(operators: Iterable[ClusterOperator]) -> Iterator[Blocker]:
    for operator in sorted(operators, key=lambda one: one.metadata.name):
        name = operator.metadata.name
        condition = find_condition(operator.status.conditions, "Upgradeable")
        if lacks_report(operator.status.conditions, "Available", "Upgradeable"):
            yield Blocker(
                reason="ClusterOperatorStale",
                message=f"the cluster operator {name} no longer reports, so nobody knows whether"
                " it can be updated: look at its pods",
            )
        elif condition is not None and condition.status == "False":
            # A challenge of the staleness checker changes only the message.
            said = original(condition.message) or condition.reason or "no reason given"
            yield Blocker(
                reason="ClusterOperatorNotUpgradeable",
                message=f"the cluster operator {name} is not upgradeable: {said}",
            )


def _name(entry: ComponentOverride) -> str:
    kind = f"{entry.kind}.{entry.group}" if entry.group else entry.kind
    return f"{kind} {entry.namespace}/{entry.name}" if entry.namespace else f"{kind} {entry.name}"
