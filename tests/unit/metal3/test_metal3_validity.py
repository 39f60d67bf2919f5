"""The status of a Provisioning says whether it is valid."""

from datetime import UTC, datetime, timedelta

from msgspec import structs
from tests.unit.metal3.test_metal3_validation import MANAGED

from quarterdeck.api.meta import ObjectMeta
from quarterdeck.api.metal3_v1alpha1 import (
    OperatorCondition,
    Provisioning,
    ProvisioningSpec,
    ProvisioningStatus,
)
from quarterdeck.metal3.validation import faults
from quarterdeck.metal3.validity import desired_status

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def provisioning(generation: int, **changes: str) -> Provisioning:
    spec: ProvisioningSpec = structs.replace(MANAGED, **changes)
    return Provisioning(metadata=ObjectMeta(generation=generation), spec=spec)


def status_of(found: Provisioning, now: datetime = NOW) -> ProvisioningStatus:
    return desired_status(found, faults(found.spec), now)


def test_a_valid_one_says_so() -> None:
    status = status_of(provisioning(3))
    assert status.observed_generation == 3
    assert status.conditions == (
        OperatorCondition(
            type="Valid", status="True", reason="AsExpected", message="", last_transition_time=NOW
        ),
    )


def test_an_invalid_one_names_every_field_with_its_value_and_remedy() -> None:
    (valid,) = status_of(
        provisioning(1, provisioning_ip="10.0.0.1", provisioning_interface="a/b")
    ).conditions
    assert (valid.status, valid.reason) == ("False", "InvalidConfiguration")
    assert valid.message is not None
    assert "spec.provisioningIP: '10.0.0.1': pick an address in" in valid.message
    assert "spec.provisioningInterface: 'a/b': name the network interface" in valid.message


def test_the_time_changes_with_the_status_only_and_what_others_wrote_stays() -> None:
    foreign = OperatorCondition(type="Foreign", status="True")
    earlier = ProvisioningStatus(version="4.6", conditions=(foreign,))
    first = structs.replace(provisioning(1, provisioning_ip="10.0.0.1"), status=earlier)
    told = structs.replace(first, status=status_of(first))
    later = NOW + timedelta(hours=1)
    again = status_of(told, later)
    assert again == told.status
    assert (again.version, again.conditions[0]) == ("4.6", foreign)
    mended = structs.replace(told, spec=MANAGED)
    (_, valid) = status_of(mended, later).conditions
    assert (valid.status, valid.last_transition_time) == ("True", later)


def test_a_condition_that_somebody_wrote_without_a_time_gets_one() -> None:
    untimed = ProvisioningStatus(conditions=(OperatorCondition(type="Valid", status="True"),))
    (valid,) = status_of(structs.replace(provisioning(1), status=untimed)).conditions
    assert valid.last_transition_time == NOW
