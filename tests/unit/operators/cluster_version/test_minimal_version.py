"""What ClusterVersion says while no payload is applied: nothing that is not so."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from quarterdeck.api.config_v1 import ClusterVersion, ClusterVersionSpec, FeatureSet
from quarterdeck.operators.cluster_version.minimal_version import desired_status

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def version() -> ClusterVersion:
    return ClusterVersion(spec=ClusterVersionSpec(cluster_id="x"))


def test_no_release_is_claimed_to_be_there_or_on_its_way() -> None:
    status = desired_status(version(), "1.0.0", "", NOW)
    said = {one.type: (one.status, one.reason) for one in status.conditions}
    assert said == {
        "Available": ("False", "NoPayload"),
        "Failing": ("False", "AsExpected"),
        "Progressing": ("False", "NoPayload"),
        "Upgradeable": ("True", "AsExpected"),
    }
    assert status.desired.version == "1.0.0"
    assert status.history == ()


@pytest.mark.parametrize("feature_set", ["", FeatureSet.CUSTOM_NO_UPGRADE])
def test_said_once_it_stays_as_it_is(feature_set: str) -> None:
    """Times do not move while nothing changes, so nothing is written."""
    once = desired_status(version(), "1.0.0", feature_set, NOW)
    settled = msgspec.structs.replace(version(), status=once)
    assert desired_status(settled, "1.0.0", feature_set, NOW + timedelta(hours=1)) == once
