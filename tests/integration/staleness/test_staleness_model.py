"""The model of the API server that the unit tests rely on, checked against a real one."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from tests.integration.staleness.board import Board, conditions
from tests.unit.operators.staleness.model import CHECKER, OPERATOR, ModelServer, changed

from quarterdeck.api.meta import Object
from quarterdeck.operators.staleness.evidence import writes_of
from quarterdeck.status.staleness_marks import checking_message, verdict_message

Step = tuple[str, Callable[[list[Object]], list[Object]]]


def challenged(found: list[Object]) -> list[Object]:
    return [one | {"message": checking_message(one["message"])} for one in found]


def given_up(found: list[Object]) -> list[Object]:
    return [
        one
        | {
            "message": verdict_message(one["message"], one["status"], 20),
            "status": "Unknown",
            "lastTransitionTime": "2026-01-02T00:00:00Z",
        }
        for one in found
    ]


# Each a writer, and what it makes of the conditions that it finds.
STEPS: list[Step] = [
    (CHECKER, challenged),
    (CHECKER, challenged),  # the same again changes nothing
    (OPERATOR, lambda found: changed(found, "Degraded", message="all is well")),
    (OPERATOR, lambda _: conditions()),
    (OPERATOR, lambda _: conditions()),
    (CHECKER, challenged),
    (OPERATOR, lambda found: changed(found, "Available", reason="Other")),
    (CHECKER, given_up),
    (OPERATOR, lambda found: found[:3]),
    (OPERATOR, lambda _: conditions("other words")),
]


def written(obj: Object) -> dict[str, tuple[frozenset[str], bool]]:
    return {write.manager: (write.messages, write.whole) for write in writes_of(obj)}


def times(obj: Object) -> dict[str, datetime | None]:
    return {write.manager: write.time for write in writes_of(obj)}


def next_second() -> datetime:
    """The API's times have whole seconds: a change is seen in them only after the next begins."""
    now = datetime.now(UTC)
    time.sleep(1.05 - now.microsecond / 1e6)
    return datetime.now(UTC)


def play(board: Board) -> None:
    board.create("it")
    model = ModelServer(board.said("it"), atomic=board.owned("it", OPERATOR) == {})
    assert written(model.get()) == written(board.get("it"))
    for number, (manager, change) in enumerate(STEPS):
        before, model_before = times(board.get("it")), times(model.get())
        model.now = next_second()
        model.update(manager, change(model.conditions))
        board.say("it", change(board.said("it")), manager)
        real, modelled = board.get("it"), model.get()
        assert real["status"]["conditions"] == modelled["status"]["conditions"]
        assert written(modelled) == written(real), f"step {number}"
        after, model_after = times(real), times(modelled)
        moved = {name for name in after if after[name] != before.get(name)}
        model_moved = {n for n in model_after if model_after[n] != model_before.get(n)}
        assert model_moved == moved, f"step {number}: whose time moves"


@pytest.mark.slow
def test_the_model_does_what_the_server_does(board: Board) -> None:
    """Who owns which message after each write, and whose time moves."""
    play(board)


@pytest.mark.slow
def test_the_model_does_it_for_an_atomic_list_too(board: Board, atomic_conditions: None) -> None:
    play(board)
