"""A probe that is disturbed at any point leaves nothing behind, on a real API server."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from tests.integration.operators.staleness.board import Board, conditions

from quarterdeck.api.meta import Object
from quarterdeck.kube import Client, ConnectionFailed, load_kubeconfig
from quarterdeck.operators.staleness.probe import (
    Interrupted,
    ProbeFailed,
    ProbeRefused,
    ProbeResult,
    probe,
)
from quarterdeck.status.staleness_marks import checking_message

CHECKER = "quarterdeck-staleness"
REQUESTS = 5
"""A probe that is not answered reads, asks, reads again, puts back and gives back."""
Disturb = Callable[[], Awaitable[None] | None]


class Disturbed(Client):
    """A client beside whose requests something happens."""

    def __init__(self, board: Board, before: dict[int, Disturb], after: dict[int, Disturb]) -> None:
        super().__init__(load_kubeconfig(board.plane.kubeconfig))
        self._numbers = count()
        self._before, self._after = before, after

    async def get(self, *words: Any, **options: Any) -> Any:
        return await self._disturbed(super().get(*words, **options))

    async def patch(self, *words: Any, **options: Any) -> Any:
        return await self._disturbed(super().patch(*words, **options))

    async def _disturbed(self, request: Awaitable[Any]) -> Any:
        number = next(self._numbers)
        await _happens(self._before.get(number))
        answer = await request
        await _happens(self._after.get(number))
        return answer


async def _happens(what: Disturb | None) -> None:
    done = what() if what else None
    if done is not None:
        await done


def probed(
    board: Board,
    *,
    before: dict[int, Disturb] | None = None,
    after: dict[int, Disturb] | None = None,
    timeout: float = 0.1,
) -> ProbeResult:
    async def run() -> ProbeResult:
        async with Disturbed(board, before or {}, after or {}) as client:
            return await probe(client, "it", timeout)

    return asyncio.run(run())


def entries(board: Board) -> list[Object]:
    found: list[Object] = board.get("it")["metadata"]["managedFields"]
    return sorted(found, key=lambda entry: (entry["manager"], entry["operation"]))


def told_to_end(number: signal.Signals) -> Disturb:
    def tell() -> None:
        os.kill(os.getpid(), number)

    return tell


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_any_point_leaves_nothing_behind(board: Board, number: signal.Signals) -> None:
    """Also one while the messages are put back, and one whose answer was on its way."""
    board.create("it")
    was = entries(board)
    for request in range(REQUESTS):
        for when in ("before", "after"):
            with suppress(Interrupted):
                assert probed(board, **{when: {request: told_to_end(number)}}).put_back  # type: ignore[arg-type]
            assert board.said("it") == conditions(), f"{when} request {request}"
            assert entries(board) == was, f"{when} request {request}"


def lost() -> None:
    raise ConnectionFailed("PATCH", "/", "cut", sent=True)


@pytest.mark.parametrize("request_number", [1, 3])
def test_an_answer_that_is_lost_leaves_nothing_behind(board: Board, request_number: int) -> None:
    """The challenge, and what puts the messages back, may have been carried out."""
    board.create("it")
    was = entries(board)
    with suppress(ConnectionFailed):
        assert probed(board, after={request_number: lost}).put_back
    assert board.said("it") == conditions()
    assert entries(board) == was


def test_the_challenge_of_a_checker_is_not_taken_off(board: Board) -> None:
    """The operator has answered the probe; what stands then is the checker's question."""
    board.create("it")
    asked = [one | {"message": checking_message(one["message"])} for one in conditions()]

    def answered_and_asked() -> None:
        board.say("it", conditions())
        board.say("it", asked, manager=CHECKER)

    probed(board, after={1: answered_and_asked})
    assert board.said("it") == asked
    assert board.owned("it", CHECKER) is not None


def test_one_that_is_deleted_while_it_is_asked_is_no_answer(board: Board) -> None:
    """Nor is its successor of the same name, which is left alone."""
    board.create("it")

    def made_again() -> None:
        board.delete("it")
        board.create("it", conditions("another"))

    with pytest.raises(ProbeFailed, match="was deleted while it was asked"):
        probed(board, after={1: made_again}, timeout=30)
    assert board.said("it") == conditions("another")


def test_one_that_has_no_way_to_answer_is_not_asked(board: Board) -> None:
    board.create("it", [])
    said = [{k: v for k, v in one.items() if k != "message"} for one in conditions()]
    board.apply("it", said)
    with pytest.raises(ProbeRefused, match=r"it cannot be checked: .* its Lease"):
        probed(board)
    assert board.said("it") == said
