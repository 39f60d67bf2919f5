"""Which gates are on, who says so, and what a feature set holds back."""

import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.config_v1 import (
    CustomFeatureGates,
    FeatureGate,
    FeatureGateAttributes,
    FeatureGateDetails,
    FeatureGateSpec,
    FeatureGateStatus,
    FeatureSet,
    UpdateHistory,
)
from quarterdeck.api.meta import ManagedFields, ObjectMeta
from quarterdeck.feature_gates import (
    LOG_LEVEL_GATE,
    blocks_minor_updates,
    custom_gates,
    gate_is_on,
    gate_states,
)
from quarterdeck.operators.cluster_version.feature_gates.status import desired_status, other_owners
from quarterdeck.operators.cluster_version.history import maybe_running
from quarterdeck.operators.cluster_version.minimal_version import upgradeable

TABLE = {"Everywhere": [*FeatureSet, "Default"], "Preview": ["TechPreviewNoUpgrade"]}
NOW = datetime(2026, 11, 16, tzinfo=UTC)
names = st.sampled_from(["Everywhere", "Preview", "Unknown"])


def details(version: str, *enabled: str) -> FeatureGateDetails:
    on = tuple(FeatureGateAttributes(name=name) for name in enabled)
    return FeatureGateDetails(version=version, enabled=on)


def gates(*entries: FeatureGateDetails, feature_set: str = "") -> FeatureGate:
    return FeatureGate(
        spec=FeatureGateSpec(feature_set=feature_set),
        status=FeatureGateStatus(feature_gates=entries),
    )


@pytest.mark.parametrize(
    ("found", "on"),
    [
        pytest.param(gates(details("1.0", LOG_LEVEL_GATE)), True, id="on for our version"),
        pytest.param(gates(details("1.0")), False, id="not listed is off"),
        pytest.param(
            gates(details("1.1", LOG_LEVEL_GATE)), False, id="on for another version only is off"
        ),
        pytest.param(gates(), False, id="nobody has said"),
        pytest.param(None, False, id="no object"),
    ],
)
def test_a_gate_is_on_only_where_our_own_version_says_so(
    found: FeatureGate | None, on: bool
) -> None:
    assert gate_is_on(found, "1.0", LOG_LEVEL_GATE) is on


@pytest.mark.parametrize("feature_set", list(FeatureSet))
def test_the_log_level_is_part_of_every_feature_set_of_this_release(feature_set: str) -> None:
    assert gate_states(feature_set)[LOG_LEVEL_GATE]


def test_a_feature_set_turns_its_own_gates_on() -> None:
    default = gate_states("", table=TABLE)
    assert default == {"Everywhere": True, "Preview": False}
    preview = gate_states("TechPreviewNoUpgrade", table=TABLE)
    assert preview == {"Everywhere": True, "Preview": True}


def test_what_the_payload_lists_wins_over_the_table_and_the_administrator_over_both() -> None:
    listed = {"Everywhere": False, "Preview": True, "Extra": True}
    assert gate_states("", listed=listed, table=TABLE) == listed
    custom = CustomFeatureGates(enabled=("Everywhere",), disabled=("Extra",))
    spec = FeatureGateSpec(feature_set="CustomNoUpgrade", custom_no_upgrade=custom)
    on, off = custom_gates(spec)
    assert gate_states("CustomNoUpgrade", listed=listed, on=on, off=off, table=TABLE) == {
        "Everywhere": True,
        "Preview": True,
        "Extra": False,
    }


@given(st.lists(names), st.lists(names), st.sampled_from(list(FeatureSet)))
def test_gates_named_one_by_one_count_in_their_own_feature_set_only(
    on: list[str], off: list[str], feature_set: str
) -> None:
    custom = CustomFeatureGates(enabled=tuple(on), disabled=tuple(off))
    spec = FeatureGateSpec(feature_set=feature_set, custom_no_upgrade=custom)
    turned_on, turned_off = custom_gates(spec)
    states = gate_states(feature_set, on=turned_on, off=turned_off, table=TABLE)
    plain = gate_states(feature_set, table=TABLE)
    if feature_set != "CustomNoUpgrade":
        assert states == plain
    else:
        assert states == plain | dict.fromkeys(on, True) | dict.fromkeys(off, False)


def test_the_status_has_our_version_and_those_that_still_run() -> None:
    found = gates(details("1.0", "A"), details("0.8", "A"), details("0.9", "A"))
    wanted = desired_status(found, "1.0", {"B": True, "C": False}, running={"0.9"})
    ours = FeatureGateDetails(
        version="1.0",
        enabled=(FeatureGateAttributes(name="B"),),
        disabled=(FeatureGateAttributes(name="C"),),
    )
    assert wanted.feature_gates == (details("0.9", "A"), ours)


@given(st.dictionaries(names, st.booleans()), st.sets(st.sampled_from(["0.8", "0.9"])))
def test_a_status_that_is_as_wanted_stays_so(states: dict[str, bool], running: set[str]) -> None:
    found = gates(details("0.8"), details("0.9"))
    once = desired_status(found, "1.0", states, running)
    settled = msgspec.structs.replace(found, status=once)
    assert desired_status(settled, "1.0", dict(reversed(states.items())), running) == once


def owned_by(*managers: str, field: str = "f:featureGates") -> FeatureGate:
    fields = msgspec.Raw(json.dumps({"f:status": {field: {}}}).encode())
    entries = [ManagedFields(manager=one, operation="Update", fields_v1=fields) for one in managers]
    return FeatureGate(metadata=ObjectMeta(managed_fields=entries), spec=FeatureGateSpec())


def test_a_status_is_left_to_whoever_else_wrote_it() -> None:
    assert other_owners(owned_by("us"), "us") == []
    assert other_owners(owned_by(), "us") == []
    assert other_owners(owned_by("us", "config-operator"), "us") == ["config-operator"]
    assert other_owners(owned_by("kubectl", field="f:conditions"), "us") == []


@pytest.mark.parametrize("feature_set", list(FeatureSet))
def test_only_sets_with_no_upgrade_in_their_name_hold_updates_back(feature_set: str) -> None:
    held = blocks_minor_updates(feature_set)
    assert held == ("NoUpgrade" in feature_set)
    condition = upgradeable(feature_set, NOW)
    assert condition.status == ("False" if held else "True")
    assert (feature_set if held else "") in condition.message


def test_versions_run_back_to_the_last_that_was_completed() -> None:
    entries = [("1.2", "Partial"), ("1.1", "Partial"), ("1.0", "Completed"), ("0.9", "Completed")]
    history = tuple(
        UpdateHistory(
            state=state,
            started_time=NOW,
            completion_time=None,
            version=version,
            image="",
            verified=False,
        )
        for version, state in entries
    )
    assert maybe_running(history) == ("1.2", "1.1", "1.0")
    assert maybe_running(()) == ()
