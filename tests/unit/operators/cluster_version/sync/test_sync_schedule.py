"""Which manifest is next: whatever comes of them, order and dependencies hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.controller import Backoff
from quarterdeck.operators.cluster_version.sync.progress import DONE, Failed, Outcome, Waiting
from quarterdeck.operators.cluster_version.sync.schedule import (
    FAILURE_HOLD,
    RECHECK_PERIOD,
    WRITE_PERIOD,
    WRITES_AT_ONCE,
    Schedule,
)
from quarterdeck.payload.graph import Graph, Mode, build_graph
from quarterdeck.payload.model import Manifest

FAILED = Failed("Broken", "it is broken")
WAITING = Waiting("NotYet", "it is on its way")
OUTCOMES: list[Outcome] = [DONE, FAILED, WAITING]


def manifest(level: int, component: str, number: int, kind: str = "ConfigMap") -> Manifest:
    return Manifest(
        file=f"0000_{level:02}_{component}_{number:02}.yaml",
        document=1,
        line=1,
        run_level=level,
        component=component,
        object={
            "apiVersion": "batch/v1" if kind == "Job" else "v1",
            "kind": kind,
            "metadata": {"name": f"{component}-{number}"},
        },
    )


@st.composite
def graphs(draw: st.DrawFn, mode: Mode | None = None) -> Graph:
    """Payloads of a few run levels, components and manifests, with a Job here and there."""
    manifests = [
        manifest(level, component, number, draw(st.sampled_from(["ConfigMap"] * 6 + ["Job"])))
        for level in range(draw(st.integers(1, 4)))
        for component in draw(st.sets(st.sampled_from("abc"), min_size=1))
        for number in range(draw(st.integers(1, 3)))
    ]
    return build_graph(manifests, mode or draw(st.sampled_from(Mode)))


def schedule_of(graph: Graph) -> Schedule:
    return Schedule(graph, backoff=Backoff(base=1, limit=8, jitter=0), dice=lambda: 0.0)


def before(graph: Graph) -> list[set[int]]:
    """For each step those that must be done before it begins while updating."""
    first, needs = 0, list[set[int]]()
    of_node: list[range] = []
    for node in graph.nodes:
        steps = range(first, first + len(node.manifests))
        of_node.append(steps)
        outer = {step for other in node.after for step in of_node[other]}
        outer |= {step for one in outer for step in needs[one]}
        needs += [outer | set(range(first, step)) for step in steps]
        first += len(node.manifests)
    return needs


@given(graphs(), st.data())
def test_a_step_never_begins_before_what_it_depends_on_is_done(
    graph: Graph, data: st.DataObject
) -> None:
    """Whatever comes of the steps and in whichever order they end, all are done at last."""
    schedule, needs = schedule_of(graph), before(graph)
    barriers = [
        {s for s in needs[step] if _node(graph, s) != _node(graph, step)}
        for step in range(len(schedule))
    ]
    done: set[int] = set()
    tried: set[int] = set()
    running: list[int] = []
    now, failures_left = 0.0, 40
    while not schedule.all_done:
        while (step := schedule.take(now)) is not None:
            needed = needs[step] if graph.mode is Mode.UPDATING else barriers[step]
            assert needed <= done
            assert needs[step] - barriers[step] <= tried
            assert step not in running
            running.append(step)
        if not running:
            due = schedule.next_due()
            assert due is not None, "nothing runs, nothing rests, and it is not done"
            assert due > now
            now = due
            continue
        step = running.pop(data.draw(st.integers(0, len(running) - 1)))
        outcome: Outcome = DONE
        if failures_left:
            outcome = data.draw(st.sampled_from(OUTCOMES))
            failures_left -= 1
        schedule.record(step, outcome, now)
        tried.add(step)
        done |= {step} if outcome is DONE else set()
    assert done == tried == set(range(len(schedule)))


def _node(graph: Graph, step: int) -> int:
    return [node.number for node in graph.nodes for _ in node.manifests][step]


@given(graphs(Mode.UPDATING), st.data())
def test_while_updating_a_step_that_fails_holds_back_what_depends_on_it_and_nothing_else(
    graph: Graph, data: st.DataObject
) -> None:
    schedule, needs = schedule_of(graph), before(graph)
    broken = data.draw(st.integers(0, len(schedule) - 1))
    while (step := schedule.take(0.0)) is not None:
        schedule.record(step, FAILED if step == broken else DONE, 0.0)
    dependants = {step for step in range(len(schedule)) if broken in needs[step]}
    assert schedule.undone == dependants | {broken}
    assert set(schedule.troubled) == {broken}


@pytest.mark.parametrize("mode", [Mode.INITIALIZING, Mode.RECONCILING])
def test_in_the_other_modes_every_step_is_tried_and_all_faults_are_known(mode: Mode) -> None:
    graph = build_graph([manifest(level, "a", n) for level in (1, 2) for n in (1, 2)], mode)
    schedule = schedule_of(graph)
    while (step := schedule.take(0.0)) is not None:
        schedule.record(step, FAILED, 0.0)
    assert schedule.all_tried
    assert set(schedule.troubled) == {0, 1, 2, 3}


def test_steps_begin_in_file_order() -> None:
    graph = build_graph([manifest(1, "a", n) for n in range(9)], Mode.RECONCILING)
    schedule = schedule_of(graph)
    taken = []
    while (step := schedule.take(0.0)) is not None:
        taken.append(step)
        schedule.record(step, DONE, 0.0)
    assert taken == list(range(9))


def one_step(mode: Mode = Mode.UPDATING) -> Schedule:
    schedule = schedule_of(build_graph([manifest(1, "a", 1)], mode))
    assert schedule.take(0.0) == 0
    return schedule


def test_a_failed_step_is_tried_again_after_a_time_that_doubles() -> None:
    schedule, now, waits = one_step(), 0.0, []
    for _ in range(6):
        schedule.record(0, FAILED, now)
        due = schedule.next_due()
        assert due is not None
        assert schedule.take(due - 0.01) is None
        waits.append(due - now)
        now = due
        assert schedule.take(now) == 0
    assert waits == [1, 2, 4, 8, 8, 8]


def test_a_change_of_its_object_wakes_a_failed_step_but_not_at_once() -> None:
    """Else a write that fails, and changes something, would wake itself for ever."""
    schedule = one_step()
    for now in (0.0, 10.0, 20.0):
        schedule.record(0, FAILED, now)
        assert schedule.take(now + 10.0) == 0
    schedule.record(0, FAILED, 30.0)
    assert schedule.next_due() == 38.0
    schedule.wake(0, 30.1)
    assert schedule.next_due() == 30.0 + FAILURE_HOLD


def test_a_change_of_its_object_wakes_a_waiting_step_at_once() -> None:
    schedule = one_step()
    schedule.record(0, WAITING, 0.0)
    assert schedule.next_due() == RECHECK_PERIOD
    schedule.wake(0, 1.0)
    assert schedule.take(1.0) == 0


def test_a_change_while_a_step_runs_makes_it_run_once_more() -> None:
    schedule = one_step()
    schedule.wake(0, 0.0)
    schedule.wake(0, 0.0)
    assert schedule.take(0.0) is None
    schedule.record(0, WAITING, 0.0)
    assert schedule.take(0.0) == 0
    schedule.record(0, WAITING, 0.0)
    assert schedule.take(0.0) is None


@pytest.mark.parametrize("mode", Mode)
def test_a_done_step_is_looked_at_again_when_its_object_changes(mode: Mode) -> None:
    """Whatever is applied already is kept so, also while an update waits for something else."""
    schedule = one_step(mode)
    schedule.record(0, DONE, 0.0)
    assert schedule.wake(0, 1.0)
    assert schedule.take(1.0) == 0
    schedule.record(0, FAILED, 1.0)
    assert not schedule.all_done


def test_what_depends_on_a_step_that_was_done_once_goes_on_when_it_is_no_more() -> None:
    graph = build_graph([manifest(1, "a", 1), manifest(2, "a", 1)], Mode.UPDATING)
    schedule = schedule_of(graph)
    assert schedule.take(0.0) == 0
    schedule.record(0, DONE, 0.0)
    assert schedule.take(0.0) == 1
    schedule.wake(0, 0.0)
    assert schedule.take(0.0) == 0
    schedule.record(0, WAITING, 0.0)
    schedule.record(1, DONE, 0.0)
    assert schedule.undone == {0}


@pytest.mark.parametrize("mode", Mode)
def test_a_job_that_has_completed_does_not_run_again_when_it_is_deleted(mode: Mode) -> None:
    schedule = schedule_of(build_graph([manifest(1, "a", 1, "Job")], mode))
    assert schedule.take(0.0) == 0
    schedule.record(0, DONE, 0.0)
    assert not schedule.wake(0, 1.0)
    assert schedule.take(1.0) is None


def test_a_pass_looks_at_every_step_once() -> None:
    graph = build_graph([manifest(1, "a", n) for n in range(3)], Mode.RECONCILING)
    schedule = schedule_of(graph)
    for outcome in (DONE, WAITING, FAILED):
        while (step := schedule.take(0.0)) is not None:
            schedule.record(step, outcome, 0.0)
        schedule.begin_pass(lambda _step: False)
    assert [schedule.take(0.0) for _ in range(4)] == [0, 1, 2, None]


def test_a_pass_leaves_out_what_is_settled_and_what_is_under_way() -> None:
    graph = build_graph([manifest(1, "a", n) for n in range(4)], Mode.RECONCILING)
    schedule = schedule_of(graph)
    while (step := schedule.take(0.0)) is not None:
        schedule.record(step, DONE, 0.0)
    schedule.begin_pass({2}.__contains__)
    assert schedule.take(0.0) == 0  # under way, still at the next pass
    schedule.begin_pass({2}.__contains__)
    assert [schedule.take(0.0) for _ in range(3)] == [1, 3, None]


def test_an_object_that_somebody_keeps_changing_is_written_at_a_slow_pace_in_the_end() -> None:
    schedule, now, writes = one_step(Mode.RECONCILING), 0.0, [0.0]
    while len(writes) < 20:
        schedule.record(0, DONE, now, wrote=True)
        schedule.wake(0, now + 0.1)
        due = schedule.next_due()
        assert due is not None
        now = due
        assert schedule.take(now) == 0
        writes.append(now)
    assert writes[WRITES_AT_ONCE - 1] < 2
    assert writes[-1] - writes[WRITES_AT_ONCE] > 8 * WRITE_PERIOD


def test_looking_without_writing_is_not_slowed_down() -> None:
    schedule = one_step(Mode.RECONCILING)
    for _ in range(100):
        assert schedule.record(0, DONE, 0.0) == 0
        schedule.wake(0, 0.0)
        assert schedule.take(0.0) == 0


def test_an_empty_payload_is_done() -> None:
    for mode in Mode:
        schedule = schedule_of(build_graph([], mode))
        assert schedule.all_done
        assert schedule.all_tried
        assert schedule.take(0.0) is None


@pytest.mark.parametrize("mode", [Mode.INITIALIZING, Mode.UPDATING])
def test_not_all_is_done_while_a_done_step_is_looked_at_again(mode: Mode) -> None:
    schedule = schedule_of(build_graph([manifest(0, "a", 0)], mode))
    step = schedule.take(0)
    assert step is not None
    schedule.record(step, DONE, 0)
    seen = [schedule.all_done]
    schedule.wake(step, 0)
    assert schedule.take(0) == step
    seen.append(schedule.all_done)
    schedule.record(step, WAITING, 0)
    seen.append(schedule.all_done)
    assert seen == [True, False, False]
