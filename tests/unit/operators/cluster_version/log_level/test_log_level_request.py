"""What `quarterdeck log-level` says and writes."""

from datetime import UTC, datetime, timedelta
from typing import Any

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
)
from quarterdeck.api.meta import Object
from quarterdeck.cli.durations import parse_duration
from quarterdeck.operators.cluster_version.log_level.expiry import ANNOTATION, parse_expiry
from quarterdeck.operators.cluster_version.log_level.levels import LEVELS
from quarterdeck.operators.cluster_version.log_level.request import (
    LevelObjects,
    level_patch,
    level_view,
    why_gate_is_off,
)

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
GATE = "ClusterVersionOperatorConfiguration"
levels = st.sampled_from(list(LEVELS))


def config(level: str, expiry: str = "", *, generation: int = 1, observed: int = 1) -> Object:
    return {
        "metadata": {"generation": generation, "annotations": {ANNOTATION: expiry}},
        "spec": {"operatorLogLevel": level},
        "status": {"observedGeneration": observed},
    }


def gates(
    version: str = "1.0", *, on: bool = True, spec: FeatureGateSpec | None = None
) -> FeatureGate:
    entry = FeatureGateDetails(
        version=version, enabled=(FeatureGateAttributes(name=GATE),) if on else ()
    )
    return FeatureGate(
        spec=spec or FeatureGateSpec(), status=FeatureGateStatus(feature_gates=(entry,))
    )


def seen(found: Object | None = None, gate: FeatureGate | None = None) -> LevelObjects:
    return LevelObjects(config=found or config("Normal"), gates=gate, version=None)


def test_a_gate_that_is_on_is_not_in_the_way() -> None:
    assert why_gate_is_off(seen(gate=gates())) == ""


CUSTOM = CustomFeatureGates(disabled=("Other", GATE))


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        pytest.param(None, ["no FeatureGate cluster", "create it"], id="no FeatureGate"),
        pytest.param(
            FeatureGate(spec=FeatureGateSpec()),
            ["says nothing about version", "kubectl get pods"],
            id="nobody has said which gates are on",
        ),
        pytest.param(
            gates(
                on=False,
                spec=FeatureGateSpec(feature_set="CustomNoUpgrade", custom_no_upgrade=CUSTOM),
            ),
            [
                "spec.customNoUpgrade.disabled",
                "kubectl patch featuregate cluster --type=merge -p "
                """'{"spec": {"customNoUpgrade": {"disabled": ["Other"]}}}'""",
            ],
            id="turned off by hand",
        ),
        pytest.param(
            gates(on=False),
            ["not part of the feature set Default", '"featureSet": "CustomNoUpgrade"'],
            id="not part of the set",
        ),
    ],
)
def test_why_a_gate_is_off_and_how_to_turn_it_on(gate: FeatureGate | None, said: list[str]) -> None:
    why = why_gate_is_off(seen(gate=gate))
    assert GATE in why
    for words in said:
        assert words in why


def test_the_view_says_whether_the_level_is_in_force_and_until_when() -> None:
    found = config("Trace", "Trace until 2026-11-16T12:30:00Z, then Debug")
    view = level_view(seen(found, gates()))
    assert (view.level, view.verbosity, view.in_force) == ("Trace", 6, True)
    assert (view.until, view.then) == ("2026-11-16T12:30:00Z", "Debug")
    late = level_view(seen(config("Trace", generation=2), gates()))
    assert not late.in_force
    ignored = level_view(seen(config("Trace"), gates(on=False)))
    assert not ignored.in_force
    assert ignored.ignored_because


def applied(found: Object, patch: Object) -> Object:
    annotations: dict[str, Any] = (
        found["metadata"]["annotations"] | patch["metadata"]["annotations"]
    )
    kept = {key: value for key, value in annotations.items() if value is not None}
    return {**found, "metadata": {**found["metadata"], "annotations": kept}, "spec": patch["spec"]}


@given(levels, levels)
def test_a_level_for_ever_takes_an_older_expiry_away(before: str, level: str) -> None:
    found = config(before, f"{before} until 2026-11-16T12:30:00Z, then Debug")
    after = applied(found, level_patch(found, level, None, NOW))
    assert after["spec"] == {"operatorLogLevel": level}
    assert ANNOTATION not in after["metadata"]["annotations"]


@given(st.lists(levels, min_size=1), st.integers(1, 10**6))
def test_of_levels_for_a_while_one_over_the_other_the_one_before_all_comes_back(
    chosen: list[str], seconds: int
) -> None:
    found = config("Debug")
    for level in chosen:
        found = applied(found, level_patch(found, level, timedelta(seconds=seconds), NOW))
        assert found["spec"] == {"operatorLogLevel": level}
        written = found["metadata"]["annotations"].get(ANNOTATION)
        expiry = parse_expiry(written) if written else None
        if expiry is None:
            assert level == "Normal", "only what comes back anyway needs no expiry"
            return
        assert expiry.level == level
        assert expiry.until == NOW + timedelta(seconds=seconds)
        if level == "Debug":
            assert expiry.then == "Normal", "what held already for ever ends in Normal"
            return
        assert expiry.then == "Debug"


def test_a_deadline_is_never_earlier_than_asked_for() -> None:
    now = NOW + timedelta(milliseconds=400)
    patch = level_patch(config("Normal"), "Trace", timedelta(seconds=5), now)
    expiry = parse_expiry(patch["metadata"]["annotations"][ANNOTATION])
    assert expiry is not None
    assert expiry.until == NOW + timedelta(seconds=6)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5s", 5), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400), ("2d", 172_800), ("0.5s", 0.5)],
)
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "-5s", "5x", "1h 5m", "9" * 30 + "d"])
def test_what_is_no_length_of_time(text: str) -> None:
    assert parse_duration(text) is None
