"""What explains a decision takes from the checkers themselves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.operators.staleness.published import (
    AssumedSettings,
    CheckerView,
    assumed_settings,
    checkers_in,
    entry,
    key_for,
    outdated,
)
from quarterdeck.operators.staleness.settings import Settings

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
CHECKER = "quarterdeck-staleness"


def said(minutes: float = 10, keep: bool = False, ago: float = 5, trouble: str = "") -> str:
    settings = Settings(interval=timedelta(minutes=minutes), keep_upgradeable_false=keep)
    return entry(settings, NOW - timedelta(seconds=ago), trouble)


def dated(time: str) -> str:
    return f'{{"intervalSeconds": 60, "keepUpgradeableFalse": false, "at": "{time}"}}'


def config_map(manager: str = CHECKER, **data: Any) -> Object:
    owned: Object = {"f:data": {f"f:{key}": {} for key in data}}
    entries = [{"manager": manager, "operation": "Update", "fieldsV1": owned}]
    return {"metadata": {"managedFields": entries}, "data": data}


def views(**data: Any) -> list[CheckerView]:
    return checkers_in(config_map(**data), NOW)


def assumed(**data: Any) -> AssumedSettings:
    return assumed_settings(views(**data), NOW)


def test_the_settings_are_those_of_the_checker_that_runs() -> None:
    found = assumed(a=said(1, keep=True))
    assert (found.interval, found.keep_upgradeable_false) == (timedelta(minutes=1), True)
    assert found.known
    assert found.source == "published by checker a, 5s ago"


def test_of_checkers_that_differ_the_one_that_acts_first_counts() -> None:
    """The shortest interval; and one that does not keep Upgradeable=False is enough to lose it."""
    found = assumed(a=said(10, keep=True), b=said(1))
    assert (found.interval, found.keep_upgradeable_false) == (timedelta(minutes=1), False)
    assert "the checkers differ" in found.source
    assert [one.name for one in found.checkers] == ["a", "b"]


def test_many_checkers_that_agree_are_named_in_short() -> None:
    found = assumed(**{name: said() for name in "abcde"})
    assert found.source == "published by checkers a, b, c and 2 more, 5s ago"


def test_without_a_checker_it_is_the_default() -> None:
    found = assumed_settings(checkers_in({"metadata": {}}, NOW), NOW)
    assert found.interval == timedelta(minutes=10)
    assert not found.known
    assert "no checker has published" in found.source
    refused = assumed_settings([], NOW, "the right is missing")
    assert refused.source == "the default; the right is missing"


def test_a_checker_that_is_gone_is_said_to_be() -> None:
    found = assumed(a=said(1, ago=7200))
    assert found.interval == timedelta(minutes=1)
    assert not found.known
    assert found.source == "of checker a, which said so 2h ago and may be gone"


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="nothing"),
        pytest.param("10m", id="no JSON"),
        pytest.param("[" * 100_000, id="nested without end"),
        pytest.param(said().replace("600", "0"), id="no interval"),
        pytest.param(said().replace("600", "1e400"), id="an interval without end"),
        pytest.param(said().replace("600", "6000000000000"), id="an interval of ages"),
        pytest.param(said().replace("false", '"no"'), id="no truth value"),
        pytest.param(said().replace("Z", ""), id="a time without a zone"),
        pytest.param(dated("0001-01-01T00:00:00+14:00"), id="before all times"),
        pytest.param(dated("9999-12-31T23:59:59-12:00"), id="after all times"),
        pytest.param(None, id="null"),
        pytest.param(7, id="no text"),
    ],
)
def test_what_no_checker_says_does_not_count(value: Any) -> None:
    found = assumed(a=value)
    assert not found.known
    assert found.interval == timedelta(minutes=10)
    (view,) = found.checkers
    assert (view.counts, view.remark) == (False, "not what a checker says")


def test_what_somebody_else_wrote_does_not_count_however_it_looks() -> None:
    views = checkers_in(config_map("kubectl-edit", a=said(1)), NOW)
    found = assumed_settings(views, NOW)
    assert (found.known, found.interval) == (False, timedelta(minutes=10))
    assert [one.remark for one in views] == ["not written by a checker"]


def test_what_somebody_else_has_written_over_does_not_count() -> None:
    both = config_map(a=said(1))
    both["metadata"]["managedFields"] += config_map("kubectl", a=said(1))["metadata"][
        "managedFields"
    ]
    assert [one.counts for one in checkers_in(both, NOW)] == [False]


def test_a_time_in_the_future_does_not_count() -> None:
    (view,) = views(a=said(1, ago=-3600))
    assert (view.counts, view.remark) == (False, "its time lies in the future")
    assert views(a=said(1, ago=-60))[0].counts  # API servers' clocks differ
    assert assumed(a=said(1, ago=-3600)).interval == timedelta(minutes=10), "nor as the last word"


def test_a_flood_of_checkers_is_cut() -> None:
    found = assumed(**{f"fake-{number}": said(ago=number % 100) for number in range(3000)})
    assert len(found.checkers) == 20
    assert len(found.source) < 200


def test_the_last_word_is_found_behind_a_flood_of_forgeries() -> None:
    forged = {f"fake-{number}": said(ago=-3600) for number in range(50)}
    assert assumed(**forged, gone=said(1, ago=7200)).interval == timedelta(minutes=1)


def test_a_checker_in_trouble_says_so_and_counts() -> None:
    (view,) = views(a=said(trouble="may not write " * 100))
    assert view.counts
    assert view.remark.startswith("may not write")
    assert len(view.remark) == 300


def test_what_no_checker_keeps_up_is_removed_and_ones_own_is_not() -> None:
    data = {
        "own": "junk",
        "other": said(),
        "old": said(ago=4000),
        "junk": "x",
        "late": said(ago=-4000),
    }
    assert sorted(outdated(config_map(**data), NOW, "own")) == ["junk", "late", "old"]


def test_a_key_is_one_that_a_config_map_takes() -> None:
    assert key_for("node-1.example", 1) == "node-1.example-1"
    assert key_for("ä b/c", 7) == "__b_c-7"
    assert len(key_for("x" * 300, 7)) < 253
