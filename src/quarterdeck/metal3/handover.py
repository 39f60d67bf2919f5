"""Who manages metal3's Deployment: the decisions of both operators. Pure.

Each says by an annotation on the Deployment that it manages it. If both annotations are there, the
baremetal operator manages it. The machine API operator, unless it is an old one without the gate,
decides by this table:

| Deployment | ClusterOperator `baremetal` | decision |
|---|---|---|
| absent | gone | create it |
| absent | exists | stand down: the baremetal operator creates it |
| without the baremetal operator's annotation | any | manage it |
| with that annotation | exists | stand down |
| with that annotation | gone: that operator was removed | claim it |

The baremetal operator acts only while its ClusterOperator exists: the machine API operator would
take back what it claimed before.
"""

from enum import StrEnum

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.metal3.names import BAREMETAL_OWNS, MACHINE_API_OWNS


class HandoverDecision(StrEnum):
    """What an operator does with the Deployment."""

    CREATE = "create"
    MANAGE = "manage"
    """Apply it, as the operator that owns it."""
    CLAIM = "claim"
    """Take it over in one write, and then manage it."""
    STAND_DOWN = "stand down"


class Ownership(msgspec.Struct, frozen=True):
    """The annotations of a Deployment that exists."""

    machine_api: bool
    baremetal: bool

    @property
    def owner(self) -> str:
        """The ClusterOperator of the owner; empty without an annotation."""
        if self.baremetal:
            return "baremetal"
        return "machine-api" if self.machine_api else ""


def ownership_of(deployment: Object | None) -> Ownership | None:
    """The annotations of the Deployment; None if it does not exist."""
    if deployment is None:
        return None
    annotations = deployment["metadata"].get("annotations") or {}
    return Ownership(MACHINE_API_OWNS in annotations, BAREMETAL_OWNS in annotations)


def machine_api_decision(
    found: Ownership | None, *, baremetal_exists: bool, gated: bool = True
) -> HandoverDecision:
    """The decision of the machine API operator; one that is not gated ignores the other."""
    if found is None:
        return (
            HandoverDecision.STAND_DOWN if gated and baremetal_exists else HandoverDecision.CREATE
        )
    if not gated or not found.baremetal:
        return HandoverDecision.MANAGE
    return HandoverDecision.STAND_DOWN if baremetal_exists else HandoverDecision.CLAIM


def baremetal_decision(found: Ownership | None, *, own_exists: bool) -> HandoverDecision:
    """The decision of the baremetal operator."""
    if not own_exists:
        return HandoverDecision.STAND_DOWN
    if found is None:
        return HandoverDecision.CREATE
    if found.baremetal and not found.machine_api:
        return HandoverDecision.MANAGE
    return HandoverDecision.CLAIM
