"""The benchmark's arithmetic, goals and counts: pure parts, without any process."""

import msgspec
import pytest
from bench.arithmetic import percentile, ratio
from bench.goals import (
    APPLYING,
    COMPARING,
    at_size,
    cache_goals,
    latency_goals,
    reconcile_goals,
    scale_goals,
    start_goals,
)
from bench.measure.cache import compared as compared_caches
from bench.measure.reconcile import compared as compared_operators
from bench.measure.run import medians
from bench.measure.scale import events_for, joined
from bench.requests import Request, counted, unprompted, writes
from bench.results import Measurement, Row, Verdict
from hypothesis import given
from hypothesis import strategies as st

METRICS = """\
# HELP apiserver_request_total [STABLE] Counter of apiserver requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",dry_run="",group="bench.quarterdeck.dev",\
resource="widgets",scope="resource",subresource="",verb="POST",version="v1"} 50
apiserver_request_total{code="409",component="apiserver",dry_run="",group="bench.quarterdeck.dev",\
resource="widgets",scope="resource",subresource="status",verb="PUT",version="v1"} 3
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",\
resource="configmaps",scope="resource",subresource="",verb="APPLY",version="v1"} 1.2e+01
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",\
resource="configmaps",scope="cluster",subresource="",verb="WATCH",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",\
resource="configmaps",scope="cluster",subresource="",verb="LIST",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",\
resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 6
apiserver_request_total{code="200",component="",dry_run="",group="",\
resource="",scope="",subresource="/metrics",verb="GET",version=""} 9
apiserver_request_duration_seconds_count{verb="POST"} 7
"""


@pytest.mark.parametrize(
    ("values", "percent", "found"),
    [
        pytest.param([3.0, 1.0, 2.0], 50, 2.0, id="the median of an odd number is in the middle"),
        pytest.param([1.0, 2.0, 3.0, 4.0], 50, 2.0, id="of an even number the lower one"),
        pytest.param([float(n) for n in range(1, 101)], 99, 99.0, id="99 of 100 do not exceed it"),
        pytest.param([1.0, 9.0], 99, 9.0, id="the 99th of few values is the largest"),
        pytest.param([5.0], 0, 5.0, id="the least percentile is the smallest value"),
    ],
)
def test_percentile(values: list[float], percent: float, found: float) -> None:
    assert percentile(values, percent) == found


def test_percentile_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1),
    st.integers(0, 100),
)
def test_a_percentile_is_one_of_the_values_and_enough_do_not_exceed_it(
    values: list[float], percent: int
) -> None:
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)


@pytest.mark.parametrize(
    ("of", "to", "found"),
    [
        pytest.param(6.0, 3.0, 2.0, id="twice as much is 2"),
        pytest.param(None, 3.0, None, id="what was not measured has no ratio"),
        pytest.param(6.0, None, None, id="nothing to compare with gives no ratio"),
        pytest.param(6.0, 0.0, None, id="nor does a zero"),
    ],
)
def test_ratio(of: float | None, to: float | None, found: float | None) -> None:
    assert ratio(of, to) == found


def test_medians_are_taken_for_each_figure_that_any_run_gave() -> None:
    runs = [{"a": 1.0, "b": 9.0}, {"a": 5.0}, {"a": 2.0}]
    assert medians(runs) == {"a": 2.0, "b": 9.0}


def test_requests_are_counted_by_kind_whatever_their_other_labels() -> None:
    counts = counted(METRICS)
    assert counts[Request("POST", "widgets", "", "201")] == 50
    assert counts[Request("APPLY", "configmaps", "", "200")] == 12
    assert sum(counts.values()) == 83


def test_refused_writes_count_as_writes_and_leases_do_not() -> None:
    assert writes(counted(METRICS)) == 50 + 3 + 12


def test_watches_leases_and_what_names_no_resource_are_not_unprompted() -> None:
    assert unprompted(counted(METRICS)) == 50 + 3 + 12 + 1


def found(name: str, *rows: Row) -> Measurement:
    return Measurement(name=name, title="", columns=[], rows=list(rows))


def row(subject: str, **figures: float) -> Row:
    return Row(subject=subject, figures=figures)


def by_goal(verdicts: list[Verdict]) -> dict[str, Verdict]:
    return {verdict.goal: verdict for verdict in verdicts}


def test_cache_goals_take_the_fastest_python_peer_and_the_leanest_of_all() -> None:
    verdicts = by_goal(
        cache_goals(
            found(
                "cache",
                row("quarterdeck", events_per_second=30_000, peak_mb=95),
                row("lightkube", events_per_second=15_000, peak_mb=120),
                row("kopf", events_per_second=2_000, peak_mb=260),
                row("controller-runtime", events_per_second=8_000, peak_mb=90),
                # Not a peer: it does nothing with what it reads.
                row("the generator's limit", events_per_second=200_000, peak_mb=30),
            )
        )
    )
    assert verdicts["events/s, to the fastest Python peer"].reached == 2.0
    assert verdicts["events/s, to the fastest Python peer"].met
    assert verdicts["events/s, to kopf"].reached == 15.0
    assert not verdicts["events/s, to kopf"].met
    assert verdicts["events/s, to controller-runtime"].met
    assert verdicts["peak memory, to the leanest peer"].reached == pytest.approx(95 / 90)
    assert not verdicts["peak memory, to the leanest peer"].met


def test_a_goal_whose_peer_is_missing_is_neither_met_nor_silently_left_out() -> None:
    verdict = by_goal(cache_goals(found("cache", row("quarterdeck", events_per_second=30_000))))[
        "events/s, to kopf"
    ]
    assert (verdict.met, verdict.reached, verdict.text) == (False, None, "not measured")


def test_reconcile_goals_compare_each_phase_and_allow_no_extra_write() -> None:
    verdicts = by_goal(
        reconcile_goals(
            found(
                "reconcile",
                row("bare client", created_per_second=300, changed_per_second=300),
                row("bare client, applying", changed_per_second=200),
                row(
                    "quarterdeck",
                    created_per_second=270,
                    changed_per_second=180,
                    created_extra_writes=0,
                    changed_extra_writes=1,
                ),
                row("controller-runtime", created_per_second=180, changed_per_second=200),
            )
        )
    )
    assert {goal: verdict.met for goal, verdict in verdicts.items()} == {
        "created, to the bare client": True,
        "changed, to the bare client": False,
        "changed, to the bare client that applies as we do": True,
        "created, to controller-runtime": True,
        "changed, to controller-runtime": False,
        "created: writes beyond the needed": True,
        "changed: writes beyond the needed": False,
    }


def test_latency_goals_are_in_milliseconds_and_relative_to_the_reference() -> None:
    verdicts = latency_goals(
        found(
            "latency",
            row("quarterdeck", idle_p99=0.012),
            row(COMPARING, idle_p99=0.01),
            row(APPLYING, idle_p99=0.015),
        )
    )
    reached = [(one.reached, one.met) for one in verdicts]
    assert reached == [(12.0, True), (1.2, False), (0.8, True)]


def test_start_goals_are_half_of_what_it_took_and_the_references_time() -> None:
    start = found("start", row("quarterdeck", seconds=1.35, writes=0), row(COMPARING, seconds=2.7))
    verdicts = start_goals(start, 10_000)
    assert [(one.reached, one.met) for one in verdicts] == [(0, True), (0.5, True), (2, False)]
    assert len(start_goals(start, 200)) == 2, "the other goal is for a size"


def test_scale_goals_compare_the_last_two_sizes_and_the_reference_at_the_last() -> None:
    verdicts = scale_goals(
        found(
            "scale",
            row(at_size("quarterdeck", 10), kb_per_object=90, start_per_object=9, cpu_per_event=9),
            row(at_size("quarterdeck", 100), kb_per_object=8, start_per_object=4, cpu_per_event=2),
            row(
                at_size("quarterdeck", 1_000), kb_per_object=10, start_per_object=2, cpu_per_event=2
            ),
            row(at_size(COMPARING, 1_000), kb_per_object=20),
        ),
        (10, 100, 1_000),
    )
    reached = {one.goal: (one.reached, one.met) for one in verdicts}
    assert reached == {
        "start per object, 1,000 to 100 objects": (0.5, True),
        "memory per object, 1,000 to 100 objects": (1.25, False),
        "CPU per event, 1,000 to 100 objects": (1.0, True),
        f"memory per object at 1,000, to {COMPARING}": (0.5, True),
    }


def test_scale_goals_without_figures_are_missed_and_with_one_size_there_are_none() -> None:
    assert not any(one.met for one in scale_goals(found("scale"), (10, 100)))
    assert scale_goals(found("scale"), (10,)) == []


@pytest.mark.parametrize(
    ("objects", "least", "events"),
    [
        pytest.param(1_000, 50_000, 50_000, id="fits"),
        pytest.param(300, 1_000, 1_200, id="whole rounds"),
        pytest.param(100_000, 50_000, 100_000, id="one round at least"),
    ],
)
def test_every_object_has_as_many_events(objects: int, least: int, events: int) -> None:
    assert events_for(objects, least) == events


def test_halves_of_a_row_are_joined_and_a_problem_of_either_is_kept() -> None:
    operator = msgspec.structs.replace(row("a: 10", memory_mb=1), problem="slow")
    events = Row(subject="a", problem="ended with 1")
    both = joined(operator, events, "a: 10")
    assert both.figures == {"memory_mb": 1}
    assert both.problem == "slow; ended with 1"
    assert joined(operator, row("b", events_per_second=5), "b: 10") == operator


def test_rows_of_peers_say_how_many_times_slower_they_are() -> None:
    rows = compared_caches(
        [
            row("quarterdeck", events_per_second=30_000),
            row("lightkube", events_per_second=15_000),
            Row(subject="kr8s", problem="ended with 1"),
        ]
    )
    assert [one.figures.get("slower") for one in rows] == [1.0, 2.0, None]


def test_rows_of_operators_are_shares_of_the_bare_client() -> None:
    rows = compared_operators(
        [
            row("bare client", created_per_second=400, changed_per_second=200),
            row("quarterdeck", created_per_second=300),
        ]
    )
    assert rows[1].figures["created_ratio"] == 0.75
    assert "changed_ratio" not in rows[1].figures


def test_results_survive_json() -> None:
    before = found("cache", row("quarterdeck", events_per_second=1.5))
    assert msgspec.json.decode(msgspec.json.encode(before), type=Measurement) == before
