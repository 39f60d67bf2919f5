"""Whether a ClusterServiceVersion replaces another one. Pure.

Whoever can write ClusterServiceVersions can claim it in an annotation, and the replaced one is
deleted in the end. So there has to be a plan of their Subscription too.
"""

from collections.abc import Iterable

from quarterdeck.api.operators_v1alpha1 import SUBSCRIPTIONS, ClusterServiceVersion, InstallPlan
from quarterdeck.controller.metadata import controller_of
from quarterdeck.operators.subscriptions.install.phase import Phase, PhaseResult
from quarterdeck.operators.subscriptions.names import REPLACES, SUBSCRIPTION


def being_replaced(newer: ClusterServiceVersion) -> PhaseResult:
    """The phase of a version that the newer one replaces."""
    message = f"{newer.metadata.name} replaces it, and is not ready yet"
    return PhaseResult(phase=Phase.REPLACING, reason="BeingReplaced", message=message)


def replaces(
    newer: ClusterServiceVersion, older: ClusterServiceVersion, plans: Iterable[InstallPlan]
) -> bool:
    """Whether the newer version replaces the older one; `plans` are those of the namespace."""
    names = older.metadata.name, newer.metadata.name
    if newer.metadata.annotations.get(REPLACES) != names[0] or names[0] == names[1]:
        return False
    if (older.status.phase, older.status.message) == (
        Phase.REPLACING,
        being_replaced(newer).message,
    ):
        return True  # Decided before; the Subscription and its plans may be gone since.
    subscription = older.metadata.annotations.get(SUBSCRIPTION)
    if not subscription or newer.metadata.annotations.get(SUBSCRIPTION) != subscription:
        return False
    return any(
        (owner := controller_of(plan)) is not None
        and (owner.kind, owner.name) == (SUBSCRIPTIONS.kind, subscription)
        and plan.spec.replaces == names[0]
        and plan.spec.cluster_service_version_names == (names[1],)
        for plan in plans
    )
