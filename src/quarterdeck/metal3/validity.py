"""The status of a Provisioning: whether metal3 can be configured with it. Pure.

The operator that manages metal3 writes it. How metal3 itself is doing is in the conditions of that
operator's ClusterOperator.
"""

from collections.abc import Sequence
from datetime import datetime

from msgspec import structs

from quarterdeck.api.metal3_v1alpha1 import OperatorCondition, Provisioning, ProvisioningStatus
from quarterdeck.metal3.state import StateReason
from quarterdeck.metal3.validation import InvalidValue
from quarterdeck.status import set_condition

VALID = "Valid"
"""The type of the condition."""
AS_EXPECTED = "AsExpected"


def described(faults: Sequence[InvalidValue]) -> str:
    """All faults in one message, each with field, value and remedy."""
    return "; ".join(map(str, faults))


def desired_status(
    provisioning: Provisioning, faults: Sequence[InvalidValue], now: datetime
) -> ProvisioningStatus:
    """The status with the condition `Valid`; what others wrote into it stays."""
    status = provisioning.status
    valid = OperatorCondition(
        type=VALID,
        status="False" if faults else "True",
        reason=StateReason.INVALID if faults else AS_EXPECTED,
        message=described(faults),
    )
    return structs.replace(
        status,
        observed_generation=provisioning.metadata.generation,
        conditions=set_condition(status.conditions, valid, now),
    )
