"""Which log level is in force, what is written about it, and when it runs out."""

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.meta import Object
from quarterdeck.operators.cluster_version.log_level.decision import (
    STARTUP,
    Keep,
    ObservedConfig,
    Rewrite,
    UnreadableExpiry,
    decide,
    expire,
    unobserved,
)
from quarterdeck.operators.cluster_version.log_level.expiry import (
    ANNOTATION,
    UNREADABLE_REMEDY,
    Expiry,
    parse_expiry,
)
from quarterdeck.operators.cluster_version.log_level.levels import LEVELS

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
SOON = NOW + timedelta(minutes=30)
levels = st.sampled_from(list(LEVELS))
times = st.datetimes(
    min_value=datetime(1970, 1, 2), max_value=datetime(9990, 1, 1), timezones=st.just(UTC)
).map(lambda time: time.replace(microsecond=0))


def config(level: Any, *, generation: int = 1, observed: int = 0, expiry: str = "") -> Object:
    return {
        "metadata": {
            "name": "cluster",
            "generation": generation,
            "annotations": {ANNOTATION: expiry} if expiry else {},
        },
        "spec": {"operatorLogLevel": level},
        "status": {"observedGeneration": observed} if observed else {},
    }


def seen(config: Object | None, *, gate_on: bool = True, now: datetime = NOW) -> ObservedConfig:
    return ObservedConfig(config=config, gate_on=gate_on, startup=3, now=now)


@pytest.mark.parametrize(
    ("observed", "level", "verbosity"),
    [
        pytest.param(seen(config("Normal")), "Normal", 2, id="Normal"),
        pytest.param(seen(config("Debug")), "Debug", 4, id="Debug"),
        pytest.param(seen(config("Trace")), "Trace", 6, id="Trace"),
        pytest.param(seen(config("TraceAll")), "TraceAll", 8, id="TraceAll"),
        pytest.param(seen(config("")), "Normal", 2, id="an explicit nothing is Normal"),
        pytest.param(seen({"metadata": {}, "spec": {}}), "Normal", 2, id="unset is Normal"),
        pytest.param(seen({"metadata": {}}), "Normal", 2, id="so is no spec at all"),
        pytest.param(seen(None), "Normal", 2, id="no object is Normal"),
        pytest.param(
            seen(config("Trace") | {"metadata": {"deletionTimestamp": "now"}}),
            "Normal",
            2,
            id="one that is being deleted is none",
        ),
        pytest.param(
            seen(config("Trace"), gate_on=False),
            STARTUP,
            3,
            id="with the gate off the verbosity of the start holds",
        ),
        pytest.param(seen(None, gate_on=False), STARTUP, 3, id="gate off, no object"),
        pytest.param(
            seen(config("Trace", expiry=f"Trace until {SOON.isoformat()}, then Debug")),
            "Trace",
            6,
            id="a level holds until its time is over",
        ),
        pytest.param(
            seen(config("Trace", expiry=f"Trace until {SOON.isoformat()}, then Debug"), now=SOON),
            "Debug",
            4,
            id="then the next one does, before it is written",
        ),
        pytest.param(
            seen(config("Debug", expiry=f"Trace until {NOW.isoformat()}")),
            "Debug",
            4,
            id="an expiry is about its own level only",
        ),
    ],
)
def test_the_level_in_force(observed: ObservedConfig, level: str, verbosity: int) -> None:
    decision = decide(observed)
    assert (decision.level, decision.verbosity, decision.fault) == (level, verbosity, "")
    assert decision.why


@pytest.mark.parametrize("value", ["debug", "Verbose", 7, True, ["Debug"], {"a": 1}, 1.5])
def test_a_value_that_is_no_level_is_normal_and_is_complained_about(value: Any) -> None:
    decision = decide(seen(config(value)))
    assert (decision.level, decision.verbosity) == ("Normal", 2)
    assert "spec.operatorLogLevel" in decision.fault
    assert str(value) in decision.fault
    assert "Normal, Debug, Trace, TraceAll" in decision.fault


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(json_values, st.dictionaries(st.just(ANNOTATION), st.text()), st.booleans())
def test_whatever_the_object_holds_there_is_a_decision(
    spec: Any, annotations: dict[str, str], gate_on: bool
) -> None:
    """No value raises, and the object is left as it was."""
    obj = {"metadata": {"annotations": annotations, "generation": 1}, "spec": spec}
    before = copy.deepcopy(obj)
    decision = decide(seen(obj, gate_on=gate_on))
    assert decision.verbosity in (*LEVELS.values(), 3)
    expire(obj, NOW)
    assert obj == before


@pytest.mark.parametrize(
    ("generation", "level", "before", "after"),
    [(1, "Normal", 0, 1), (3, "Normal", 2, 3), (4, "Trace", 3, 4), (40, "TraceAll", 3, 40)],
)
def test_what_status_has_to_say(generation: int, level: str, before: int, after: int) -> None:
    assert unobserved(config(level, generation=generation, observed=before)) == after


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_the_observed_generation_never_decreases(generation: int, observed: int) -> None:
    written = unobserved(config("Normal", generation=generation, observed=observed))
    assert written is None or written > observed


@pytest.mark.parametrize("status", [None, "x", [], {"observedGeneration": "7"}])
def test_a_status_of_any_form_is_put_right(status: Any) -> None:
    assert unobserved({"metadata": {"generation": 2}, "status": status}) == 2


@given(levels, times, levels)
def test_an_expiry_is_read_as_it_was_written(level: str, until: datetime, then: str) -> None:
    expiry = Expiry(level=level, until=until, then=then)
    assert parse_expiry(str(expiry)) == expiry


def test_an_expiry_without_a_next_level_goes_to_normal() -> None:
    found = parse_expiry("Trace until 2026-11-16T12:30:00+00:00")
    assert found == Expiry(level="Trace", until=SOON, then="Normal")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "Trace until tomorrow",
        "Trace until 2026-11-16T12:30:00",  # no time zone: nobody knows when that is
        "Loud until 2026-11-16T12:30:00Z",
        "Trace until 2026-11-16T12:30:00Z, then Loud",
        "Trace until 2026-11-16T12:30:00Z and more",
    ],
)
def test_an_expiry_that_cannot_be_read_is_none(text: str) -> None:
    assert parse_expiry(text) is None


@given(st.text())
def test_no_text_makes_reading_an_expiry_fail(text: str) -> None:
    parse_expiry(text)
    parse_expiry(f"Trace until {text}")


def test_the_remedy_for_an_expiry_can_be_read() -> None:
    assert parse_expiry(UNREADABLE_REMEDY.split("'")[1]) is not None


@pytest.mark.parametrize(
    ("obj", "step"),
    [
        pytest.param(config("Trace"), Keep(), id="no expiry: nothing to do, ever"),
        pytest.param(
            config("Trace", expiry=f"Trace until {SOON.isoformat()}"),
            Keep(1800.0),
            id="its time is not over",
        ),
        pytest.param(
            config("Trace", expiry=f"Trace until {NOW.isoformat()}, then Debug"),
            Rewrite("Debug", "its time is over"),
            id="its time is over",
        ),
        pytest.param(
            config("", expiry=f"Normal until {NOW.isoformat()}, then Debug"),
            Rewrite("Debug", "its time is over"),
            id="unset is Normal here too",
        ),
        pytest.param(
            config("Debug", expiry=f"Trace until {NOW.isoformat()}"),
            Rewrite(None, "another level was chosen"),
            id="what somebody chose since is left alone",
        ),
        pytest.param(config("Trace", expiry="soon"), UnreadableExpiry("soon"), id="unreadable"),
    ],
)
def test_what_an_expiry_asks_for(obj: Object, step: Any) -> None:
    assert expire(obj, NOW) == step


@given(levels, levels, st.integers(-10_000, 10_000))
def test_the_level_in_force_and_the_one_to_be_written_agree(
    level: str, then: str, left: int
) -> None:
    """What every replica applies at the deadline is what the leader writes."""
    until = NOW + timedelta(seconds=left)
    obj = config(level, expiry=str(Expiry(level=level, until=until, then=then)))
    decision, step = decide(seen(obj)), expire(obj, NOW)
    if left > 0:
        assert (decision.level, decision.look_again, step) == (level, left, Keep(left))
    else:
        assert step == Rewrite(decision.level, "its time is over")
        assert (decision.level, decision.look_again) == (then, None)


@pytest.mark.parametrize("until", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_an_expiry_beyond_the_calendar_is_unreadable_and_its_level_holds(until: str) -> None:
    """There is no such time in UTC; comparing it ended the round, again and again."""
    written = config("Trace", expiry=f"Trace until {until}, then Normal")
    assert decide(seen(written)).level == "Trace"
    assert isinstance(expire(written, NOW), UnreadableExpiry)


def test_an_expiry_at_the_end_of_the_calendar_is_far_away() -> None:
    written = config("Trace", expiry="Trace until 9999-12-31T23:59:59Z, then Normal")
    assert decide(seen(written)).level == "Trace"
    assert isinstance(expire(written, NOW), Keep)
