"""Available, Progressing and Degraded of an IngressController. Pure.

Each part that Degraded follows from may not hold for a grace period. The period begins with the
transition time of the part's own condition, which is in the status: a new leader continues it.
"""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import msgspec

from quarterdeck.api.operator_v1 import OperatorCondition
from quarterdeck.operators.ingress.observed import Observed
from quarterdeck.operators.ingress.parts import (
    IngressCondition,
    admitted,
    all_replicas_are_available,
    available_replicas,
    configuration_is_accepted,
    counts,
    load_balancer_is_pending,
    min_replicas_are_available,
    pods_run,
    rollout_of,
)
from quarterdeck.operators.ingress.settings import Settings
from quarterdeck.status import find_condition, rollout, set_condition
from quarterdeck.status.report import UNDATED

STUCK = "RolloutStuck"
"""The reason of Progressing when a roll-out makes no progress any more."""


class Requirement(msgspec.Struct, frozen=True):
    """A part that Degraded follows from, and how long it may not hold."""

    judge: Callable[[Observed], IngressCondition]
    grace: Callable[[Settings], timedelta]


REQUIREMENTS = (
    Requirement(admitted, lambda _settings: timedelta(0)),
    Requirement(pods_run, lambda settings: settings.pods_grace_period),
    Requirement(configuration_is_accepted, lambda settings: settings.pods_grace_period),
    Requirement(min_replicas_are_available, lambda settings: settings.min_replicas_grace_period),
    Requirement(all_replicas_are_available, lambda settings: settings.all_replicas_grace_period),
)


class Health(msgspec.Struct, frozen=True):
    """The conditions, and when Degraded changes although nothing else does."""

    conditions: tuple[OperatorCondition, ...]
    valid_until: datetime | None


def health(seen: Observed, settings: Settings, now: datetime) -> Health:
    """The conditions of an IngressController at this time; others that it has stay."""
    conditions = tuple(seen.controller.status.conditions)
    late: list[IngressCondition] = []
    ends: list[datetime] = []
    for requirement in REQUIREMENTS:
        part = requirement.judge(seen)
        conditions = set_condition(conditions, condition(part), now)
        if part.holds:
            continue
        end = _since(conditions, part.type) + requirement.grace(settings)
        if now >= end:
            late.append(part)
        else:
            ends.append(end)
    for part in (available(seen), progressing(seen), degraded(late)):
        conditions = set_condition(conditions, condition(part), now)
    return Health(conditions, min(ends, default=None))


def available(seen: Observed) -> IngressCondition:
    """At least one replica serves."""
    if available_replicas(seen.deployment) > 0:
        return IngressCondition(type="Available", holds=True)
    if seen.deployment is None:
        return IngressCondition(
            type="Available", holds=False, reason="NoDeployment", message="there are no pods yet"
        )
    return IngressCondition(
        type="Available", holds=False, reason="NoReplicas", message=counts(seen.deployment)
    )


def progressing(seen: Observed) -> IngressCondition:
    """The pods are being replaced, or the load balancer has no address yet."""
    if not seen.admission.admitted and seen.deployment is None:
        return IngressCondition(type="Progressing", holds=False, reason="NotAdmitted")
    match rollout_of(seen):
        case rollout.Waiting(_, message):
            return IngressCondition(
                type="Progressing", holds=True, reason="RollingOut", message=message
            )
        case rollout.Failed(_, message):
            # It is stuck, which is no progress; Degraded has the consequence.
            return IngressCondition(type="Progressing", holds=False, reason=STUCK, message=message)
    if load_balancer_is_pending(seen):
        message = "the load balancer of the Service has no address yet"
        return IngressCondition(
            type="Progressing", holds=True, reason="LoadBalancerPending", message=message
        )
    return IngressCondition(type="Progressing", holds=False)


def degraded(late: Iterable[IngressCondition]) -> IngressCondition:
    """Something has not held for longer than its grace period."""
    late = list(late)
    if not late:
        return IngressCondition(type="Degraded", holds=False)
    reason = late[0].reason if len(late) == 1 else "SeveralReasons"
    message = "\n".join(f"{part.type}: {part.message}" for part in late)
    return IngressCondition(type="Degraded", holds=True, reason=reason, message=message)


def condition(part: IngressCondition) -> OperatorCondition:
    """The part as a condition; `set_condition` dates it."""
    return OperatorCondition(
        type=part.type,
        status=str(part.holds),
        reason=part.reason,
        message=part.message,
        last_transition_time=UNDATED,
    )


def _since(conditions: Iterable[OperatorCondition], type_: str) -> datetime:
    found = find_condition(conditions, type_)
    assert found is not None  # noqa: S101 - it was set right before
    return found.last_transition_time
