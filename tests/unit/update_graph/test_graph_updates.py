"""Which updates a graph offers, and what is said of their risks."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.unit.update_graph.graphs import ALWAYS, PROMQL, conditional, graph, node, risk

from quarterdeck.update_graph.model import CHANNELS, parse_graph
from quarterdeck.update_graph.updates import (
    MAX_AVAILABLE_BYTES,
    MAX_CONDITIONAL_BYTES,
    MAX_RISKS_SHOWN,
    OfferedUpdates,
    offered_updates,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
VERSIONS = ("1.0.0", "1.0.1", "1.1.0", "1.10.0")


def offered(
    *edges: tuple[int, int],
    running: tuple[str, ...] = ("1.0.0",),
    risks: list[Any] | None = None,
) -> OfferedUpdates:
    return offered_updates(parse_graph(graph(VERSIONS, *edges, conditional=risks)), running, NOW)


def versions(found: OfferedUpdates) -> list[str]:
    return [release.version for release in found.available]


def test_the_edges_of_the_running_version_newest_first() -> None:
    assert versions(offered((0, 1), (0, 3), (0, 2))) == ["1.10.0", "1.1.0", "1.0.1"]


def test_an_update_of_an_update_is_not_offered() -> None:
    assert versions(offered((0, 1), (1, 2))) == ["1.0.1"]


def test_in_the_middle_of_an_update_both_versions_need_an_edge() -> None:
    edges = ((0, 1), (0, 2), (1, 2), (1, 3))
    assert versions(offered(*edges, running=("1.0.1", "1.0.0"))) == ["1.1.0"]


def test_a_version_that_is_not_in_the_graph_has_no_updates() -> None:
    assert offered((0, 1), running=("0.9.0",)) == OfferedUpdates()


def test_an_update_with_risks_is_offered_apart_even_if_it_has_a_plain_edge() -> None:
    found = offered((0, 1), risks=[conditional("1.0.0", "1.0.1", risk("Leak", ALWAYS))])
    assert found.available == ()
    assert [one.release.version for one in found.conditional] == ["1.0.1"]
    assert found.release("1.0.1") is not None
    assert found.release("1.1.0") is None


@pytest.mark.parametrize(
    ("risks", "status", "reason", "message"),
    [
        pytest.param([risk("Leak", ALWAYS)], "False", "Leak", "It leaks. https", id="applies"),
        pytest.param(
            [risk("Leak", PROMQL)], "Unknown", "NotEvaluated", "PromQL is not", id="not evaluated"
        ),
        pytest.param(
            [risk("Leak", PROMQL, ALWAYS)], "False", "Leak", "It leaks", id="the next rule decides"
        ),
        pytest.param(
            [risk("Leak", ALWAYS), risk("Rust", ALWAYS, message="It rusts.")],
            "False",
            "MultipleReasons",
            "It rusts. https",
            id="two apply",
        ),
        pytest.param(
            [risk("Leak", PROMQL), risk("Rust", ALWAYS, message="It rusts.")],
            "False",
            "Rust",
            "It rusts. https",
            id="one applies, one is not known",
        ),
        pytest.param([risk("a leak!", ALWAYS)], "False", "Risk", "", id="a name with blanks"),
    ],
)
def test_recommended(risks: list[Any], status: str, reason: str, message: str) -> None:
    (found,) = offered(risks=[conditional("1.0.0", "1.0.1", *risks)]).conditional
    (condition,) = found.conditions
    assert (condition.type, condition.status, condition.reason) == ("Recommended", status, reason)
    assert message in condition.message


def test_a_recommendation_keeps_its_time_while_its_status_stays() -> None:
    data = parse_graph(
        graph(VERSIONS, conditional=[conditional("1.0.0", "1.0.1", risk("Leak", ALWAYS))])
    )
    first = offered_updates(data, ("1.0.0",), NOW)
    later = offered_updates(data, ("1.0.0",), NOW + timedelta(hours=1), first.conditional)
    assert later == first


def test_conditional_updates_stay_within_what_a_status_can_hold() -> None:
    names = tuple(f"1.0.{number}" for number in range(600))
    big = [risk(f"Risk{number}", ALWAYS, message="x" * 4000) for number in range(20)]
    edges = [conditional("1.0.0", name, *big) for name in names[1:]]
    found = offered_updates(parse_graph(graph(names, conditional=edges[:80])), ("1.0.0",), NOW)
    assert 0 < len(found.conditional) < 80
    assert found.conditional[0].release.version == "1.0.80"
    text = sum(len(one.conditions[0].message) + 20 * 4000 for one in found.conditional)
    assert text <= MAX_CONDITIONAL_BYTES


def test_available_updates_stay_within_what_a_status_can_hold() -> None:
    channels = ",".join(f"{number}{'x' * 100}" for number in range(100))
    names = [f"1.0.{number}" for number in range(400)]
    text = {CHANNELS: channels, "url": f"https://example.test/{'x' * 2000}"}
    nodes = [node(name, **text) for name in names]
    edges = [(0, number) for number in range(1, 400)]
    data = msgspec.json.encode({"nodes": nodes, "edges": edges})
    found = offered_updates(parse_graph(data), ("1.0.0",), NOW)
    assert found.available[0].version == "1.0.399"
    assert len(msgspec.json.encode(found.available)) <= MAX_AVAILABLE_BYTES + 2
    assert "1.0.1" not in versions(found)
    # What is not shown can be asked for all the same.
    assert found.release("1.0.1") is not None


def test_an_update_with_more_risks_than_a_status_can_have_is_not_shown() -> None:
    first, second = (
        [risk(f"{name}{number}", ALWAYS) for number in range(MAX_RISKS_SHOWN)] for name in "AB"
    )
    risks = [conditional("1.0.0", "1.1.0", *first), conditional("1.0.1", "1.1.0", *second)]
    found = offered(risks=risks, running=("1.0.1", "1.0.0"))
    assert found.conditional == ()
    assert "It leaks." in found.risks("1.1.0")
    assert len(offered(risks=risks).conditional) == 1


def test_an_update_to_a_lower_version_is_known_and_not_shown() -> None:
    edges = ((2, 0), (2, 3))
    found = offered(*edges, running=("1.1.0",))
    assert versions(found) == ["1.10.0"]
    assert found.release("1.0.0") is not None
    risky = [conditional("1.1.0", "1.0.1", risk("Leak", ALWAYS))]
    found = offered(running=("1.1.0",), risks=risky)
    assert found.conditional == ()
    assert "It leaks." in found.risks("1.0.1")
