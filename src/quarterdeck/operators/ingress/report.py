"""The ClusterOperator `ingress`. Pure.

Available and Degraded are those of the IngressController `default`; Progressing is True if any
IngressController progresses.
"""

from collections.abc import Sequence

from quarterdeck.api.config_v1 import ClusterStatusCondition, OperandVersion
from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS, IngressController
from quarterdeck.operators.ingress.health import STUCK
from quarterdeck.operators.ingress.names import NAMESPACE
from quarterdeck.operators.ingress.settings import Settings
from quarterdeck.status import Report, all_of, condition, find_condition, standard_conditions
from quarterdeck.status.reporter import reference_to_namespace

DEFAULT = "default"
LISTED = 5
"""The most IngressControllers that a message names."""


def report(controllers: Sequence[IngressController], settings: Settings) -> Report:
    """The report on all IngressControllers."""
    default = next((one for one in controllers if one.metadata.name == DEFAULT), None)
    progressing = sorted(
        one.metadata.name for one in controllers if _status(one, "Progressing") == "True"
    )
    settled = all(_is_settled(one) for one in controllers)
    version = OperandVersion(name="ingress-controller", version=settings.router_image)
    return Report(
        conditions=standard_conditions(
            _followed(default, "Available", absent=True),
            _followed(default, "Degraded", absent=False),
            _progressing(progressing),
        ),
        versions=(version,) if settled else (),
        at_release_version=settled,
        related_objects=(
            reference_to_namespace(NAMESPACE),
            all_of(INGRESS_CONTROLLERS),
        ),
    )


def _followed(
    default: IngressController | None, type_: str, *, absent: bool
) -> ClusterStatusCondition:
    if default is None:
        message = f"there is no IngressController {DEFAULT}"
        return condition(type_, absent, "NoDefaultIngressController", message)
    found = find_condition(default.status.conditions, type_)
    if found is None:
        return condition(type_, None, "NotReconciled", f"the IngressController {DEFAULT} is new")
    holds = {"True": True, "False": False}.get(found.status)
    message = f"IngressController {DEFAULT}: {found.message}" if found.message else ""
    return condition(type_, holds, found.reason, message)


def _progressing(names: Sequence[str]) -> ClusterStatusCondition:
    if not names:
        return condition("Progressing", False)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    listed = ", ".join(names[:LISTED]) + more
    return condition("Progressing", True, "RollingOut", f"IngressControllers that change: {listed}")


def _status(controller: IngressController, type_: str) -> str:
    found = find_condition(controller.status.conditions, type_)
    return found.status if found else "Unknown"


def _is_settled(controller: IngressController) -> bool:
    """Whether the pods are those of this release; a stuck roll-out is no progress, and not done."""
    found = find_condition(controller.status.conditions, "Progressing")
    return (
        controller.status.observed_generation == controller.metadata.generation
        and found is not None
        and found.status == "False"
        and found.reason != STUCK
    )
