"""What speaks against leaving the minor version: the reasons why Upgradeable is not True.

A plain Unknown of an operator's Upgradeable speaks against nothing; an operator that was given up
as stale (4-staleness) does, whatever it last said.
"""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from quarterdeck.api.config_v1 import ClusterOperator, ComponentOverride
from quarterdeck.feature_gates import holds_updates_back
from quarterdeck.status import find_condition
from quarterdeck.status.staleness import is_stale
from quarterdeck.status.staleness_marks import is_verdict, original


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """One reason to stay within the minor version."""

    reason: str
    """One CamelCase word for programs."""
    message: str
    """What blocks, and what helps, for people."""


def blockers(
    operators: Iterable[ClusterOperator],
    overrides: Iterable[ComponentOverride],
    feature_set: str,
) -> tuple[Blocker, ...]:
    """Everything that blocks a minor update, in an order that stays the same."""
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


def _was_given_up(operator: ClusterOperator) -> bool:
    """Whether nobody knows if it can be updated: it is stale, or a condition that says so is."""
    conditions = operator.status.conditions
    told = (find_condition(conditions, type_) for type_ in ("Available", "Upgradeable"))
    lost = any(one is not None and is_verdict(one.status, one.message) for one in told)
    return lost or is_stale(conditions)


def feature_set_blockers(feature_set: str) -> Iterator[Blocker]:
    """What a feature set that cannot be left again says against a minor update."""
    if holds_updates_back(feature_set):
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
        if _was_given_up(operator):
            yield Blocker(
                reason="ClusterOperatorStale",
                message=f"the cluster operator {name} no longer reports, so nobody knows whether"
                " it can be updated: look at its pods",
            )
        elif condition is not None and condition.status == "False":
            # A mere challenge (a message in the course of a staleness check) changes nothing.
            said = original(condition.message) or condition.reason or "no reason given"
            yield Blocker(
                reason="ClusterOperatorNotUpgradeable",
                message=f"the cluster operator {name} is not upgradeable: {said}",
            )


def _name(entry: ComponentOverride) -> str:
    kind = f"{entry.kind}.{entry.group}" if entry.group else entry.kind
    return f"{kind} {entry.namespace}/{entry.name}" if entry.namespace else f"{kind} {entry.name}"
