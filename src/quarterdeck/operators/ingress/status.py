"""The status of an IngressController. Pure."""

from datetime import datetime

import msgspec

from quarterdeck.api.operator_v1 import IngressController, IngressControllerStatus
from quarterdeck.operators.ingress.access_logging import TYPE as LOGGING
from quarterdeck.operators.ingress.access_logging import access_logging_ready
from quarterdeck.operators.ingress.admission import Admission
from quarterdeck.operators.ingress.health import condition, degraded, health
from quarterdeck.operators.ingress.names import POD_LABEL
from quarterdeck.operators.ingress.observed import Observed
from quarterdeck.operators.ingress.parts import admitted, available_replicas
from quarterdeck.operators.ingress.settings import Settings
from quarterdeck.status import find_condition, remove_conditions, set_condition


class DatedStatus(msgspec.Struct, frozen=True):
    """A status, and when it changes although nothing else does."""

    status: IngressControllerStatus
    valid_until: datetime | None


def desired_status(seen: Observed, settings: Settings, now: datetime) -> DatedStatus:
    """The status at this time."""
    controller = seen.controller
    found = health(seen, settings, now)
    logging = access_logging_ready(seen.deployment, seen.pods)
    conditions = (
        set_condition(found.conditions, logging, now)
        if logging
        else remove_conditions(found.conditions, [LOGGING])
    )
    status = IngressControllerStatus(
        available_replicas=available_replicas(seen.deployment),
        selector=f"{POD_LABEL}={controller.metadata.name}",
        domain=controller.spec.domain,
        endpoint_publishing_strategy=controller.strategy,
        conditions=conditions,
        observed_generation=controller.metadata.generation,
    )
    return DatedStatus(status, found.valid_until)


def refused_status(
    controller: IngressController, reason: str, message: str, now: datetime
) -> IngressControllerStatus:
    """The status after the API server refused what the spec asks for."""
    refused = admitted(Observed(controller=controller, admission=Admission(False, reason, message)))
    conditions = tuple(controller.status.conditions)
    for part in (refused, degraded([refused])):
        conditions = set_condition(conditions, condition(part), now)
    return msgspec.structs.replace(
        controller.status,
        conditions=conditions,
        observed_generation=controller.metadata.generation,
    )


def is_refused_anew(seen: Observed) -> bool:
    """Whether the spec is refused, and the status did not say so in the same words before."""
    was = find_condition(seen.controller.status.conditions, "Admitted")
    now = condition(admitted(seen))
    said = was and (was.status, was.reason, was.message)
    return not seen.admission.admitted and said != (now.status, now.reason, now.message)
