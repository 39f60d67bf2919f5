"""What the benchmark serves and observes: recorded objects, and when they count as settled."""

import io

import msgspec
import pytest
from bench import widgets
from bench.results import Column, Measurement, Row, Verdict
from bench.settlement import Settlement
from bench.table import show_measurement
from rich.console import Console


def test_recorded_events_change_every_object_in_turn_and_number_their_versions() -> None:
    events = [msgspec.json.decode(line) for line in widgets.recorded_events(3, 7)]
    names = [event["object"]["metadata"]["name"] for event in events]
    assert names == [widgets.name_of(index) for index in (0, 1, 2, 0, 1, 2, 0)]
    assert [event["object"]["spec"]["round"] for event in events] == [1, 1, 1, 2, 2, 2, 3]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == [widgets.FIRST_VERSION + 1 + number for number in range(7)]


def test_listed_objects_are_older_than_the_list_and_end_with_their_line() -> None:
    lines = list(widgets.recorded_items(4))
    versions = [int(msgspec.json.decode(line)["metadata"]["resourceVersion"]) for line in lines]
    assert versions == sorted(set(versions))
    assert max(versions) < widgets.FIRST_VERSION
    assert all(line.endswith(b"}\n") and line.count(b"\n") == 1 for line in lines)


def test_an_object_is_about_2_kb_in_the_order_in_which_a_server_writes() -> None:
    served = widgets.served(7, 1, 5)
    assert 1_700 < len(msgspec.json.encode(served)) < 2_300
    assert list(served["spec"]) == sorted(served["spec"])
    assert list(served["metadata"]) == sorted(served["metadata"])


def widget_event(name: str, *, round_: int, generation: int, observed: int) -> bytes:
    return msgspec.json.encode(
        {
            "type": "MODIFIED",
            "object": {
                "metadata": {"name": name, "generation": generation},
                "spec": {"round": round_},
                "status": {"observedGeneration": observed},
            },
        }
    )


def config_map_event(name: str, round_: int) -> bytes:
    return msgspec.json.encode(
        {"type": "ADDED", "object": {"metadata": {"name": name}, "data": {"round": str(round_)}}}
    )


@pytest.mark.parametrize("config_map_first", [True, False], ids=["ConfigMap first", "Widget first"])
def test_a_widget_is_settled_when_config_map_and_status_have_its_round(
    config_map_first: bool,
) -> None:
    settlement = Settlement()
    if config_map_first:
        settlement.config_map_event(config_map_event("a", 0))
    settlement.widget_event(widget_event("a", round_=0, generation=1, observed=0))
    assert settlement.settled == 0
    settlement.widget_event(widget_event("a", round_=0, generation=1, observed=1))
    if not config_map_first:
        assert settlement.settled == 0
        settlement.config_map_event(config_map_event("a", 0))
    assert settlement.settled == 1


def test_a_settled_widget_that_changes_again_is_not_settled() -> None:
    settlement = Settlement()
    settlement.config_map_event(config_map_event("a", 0))
    settlement.widget_event(widget_event("a", round_=0, generation=1, observed=1))
    settlement.widget_event(widget_event("a", round_=0, generation=2, observed=1))
    assert settlement.settled == 0


def test_in_a_new_round_nothing_is_settled_until_both_parts_have_followed() -> None:
    settlement = Settlement()
    settlement.config_map_event(config_map_event("a", 0))
    settlement.widget_event(widget_event("a", round_=0, generation=1, observed=1))
    settlement.want(1)
    assert settlement.settled == 0
    settlement.widget_event(widget_event("a", round_=1, generation=2, observed=2))
    assert settlement.settled == 0
    settlement.config_map_event(config_map_event("a", 1))
    assert settlement.settled == 1


def test_a_change_tells_which_config_map_is_in_which_round() -> None:
    assert Settlement().config_map_event(config_map_event("a", 4)) == ("a", "4")


def test_the_table_names_who_is_missing_who_failed_and_which_goal_was_missed() -> None:
    out = io.StringIO()
    measurement = Measurement(
        name="cache",
        title="cache",
        columns=[Column(figure="rate", title="events/s"), Column(figure="cpu", title="CPU")],
        rows=[
            Row(subject="quarterdeck", figures={"rate": 30_000, "cpu": 26}),
            Row(subject="kr8s", problem="ended with 1 before 'synced'"),
            Row(subject="controller-runtime", problem="no go in PATH", missing=True),
        ],
        verdicts=[Verdict(goal="to kopf", wanted="≥ 25", reached=20.0, met=False, unit="times")],
        notes=["Over TLS."],
    )
    show_measurement(measurement, Console(file=out, width=120))
    lines = out.getvalue().splitlines()

    def line_with(text: str) -> str:
        return next(line for line in lines if text in line)

    assert "30,000" in line_with("quarterdeck")
    assert "failed" in line_with("kr8s")
    assert "missing" in line_with("controller-runtime")
    assert "missed" in line_with("to kopf")
    assert any("no go in PATH" in line for line in lines)
    assert any("ended with 1 before" in line for line in lines)
