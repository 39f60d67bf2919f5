"""What a challenge and a verdict do to operators that others have written, on a real API server.

`docs/stale-operators.md` says the same in words. Each operator here runs in a thread and writes in
its own way; intervals are seconds where a cluster has minutes.
"""

import json
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from functools import partial

import pytest
from tests.integration.operators.staleness.board import TYPES, Board, conditions
from tests.integration.operators.staleness.repeated import repeated
from tests.objects import cluster_operator

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.api_request import ComponentResponse, Requests
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually

Write = Callable[["Foreign"], ComponentResponse]
QUICK = ("--interval=1s", "--grace=0s")
UNHURRIED = ("--interval=5s", "--grace=0s")
"""For operators that run: on a busy machine they too are late now and then."""
COLLECTION = "/apis/config.openshift.io/v1/clusteroperators"


class Foreign:
    """An operator that is not ours: what it would say, how it writes, and what it was answered."""

    def __init__(self, requests: Requests, name: str, write: Write) -> None:
        self.name = name
        self.requests = requests
        self.saying = conditions("fine, says\nthe operator")
        self.refused = 0
        self.written = 0
        self._write = write

    @property
    def manager(self) -> str:
        return f"manager-of-{self.name}"

    def get(self) -> Object:
        found: Object = self.requests.send("GET", f"{COLLECTION}/{self.name}").json()
        return found

    def send(self, method: str, body: Object, kind: str, query: str = "") -> ComponentResponse:
        path = f"{COLLECTION}/{self.name}/status?fieldManager={self.manager}{query}"
        return self.requests.send(method, path, json.dumps(body).encode(), kind)

    def write(self) -> None:
        """Write all that it says, as it does."""
        answer = self._write(self)
        assert answer.status in (200, 409), answer.body
        if answer.status == 409:
            self.refused += 1
        else:
            self.written += 1

    def is_as_it_says(self) -> bool:
        found = self.get()["status"]["conditions"]
        words = [(one["status"], one.get("message")) for one in found if one["type"] in TYPES]
        return words == [(one["status"], one.get("message")) for one in self.saying]


def by_update(operator: Foreign) -> ComponentResponse:
    """Reads the object, changes it, and writes it back whole."""
    found = operator.get()
    found["status"]["conditions"] = operator.saying
    return operator.send("PUT", found, "application/json")


def by_merge_patch(operator: Foreign) -> ComponentResponse:
    """Replaces its conditions, whatever else is in the object."""
    body = {"status": {"conditions": operator.saying}}
    return operator.send("PATCH", body, "application/merge-patch+json")


def by_apply(operator: Foreign) -> ComponentResponse:
    """Server-side apply that gives way to others."""
    return _applied(operator, "&force=false")


def by_forced_apply(operator: Foreign) -> ComponentResponse:
    """Server-side apply that takes its fields back."""
    return _applied(operator, "&force=true")


def _applied(operator: Foreign, query: str) -> ComponentResponse:
    body = cluster_operator(operator.name) | {"status": {"conditions": operator.saying}}
    return operator.send("PATCH", body, "application/apply-patch+yaml", query)


def by_removing(operator: Foreign) -> ComponentResponse:
    """Has no messages, so that its answer is to remove ours."""
    said = [without_message(one) for one in operator.saying]
    body = {"status": {"conditions": said}}
    return operator.send("PATCH", body, "application/merge-patch+json")


def by_apply_without_messages(operator: Foreign) -> ComponentResponse:
    """Server-side apply with force of conditions that have no message."""
    operator.saying = [without_message(one) for one in operator.saying]
    return _applied(operator, "&force=true")


def without_message(one: Object) -> Object:
    return {field: value for field, value in one.items() if field != "message"}


def one_condition_by_merge_patch(operator: Foreign) -> ComponentResponse:
    """Changes Degraded, and leaves the other conditions as it finds them."""
    found = operator.get()["status"]["conditions"]
    mine = next(one for one in operator.saying if one["type"] == "Degraded")
    said = [mine if one["type"] == "Degraded" else one for one in found]
    return operator.send("PATCH", {"status": {"conditions": said}}, "application/merge-patch+json")


def running(operator: Foreign, period: float, *, looks: bool) -> AbstractContextManager[None]:
    """While this lasts: one that `looks` writes when it is not as it says, others always."""

    def act() -> None:
        if not looks or not operator.is_as_it_says():
            operator.write()

    return repeated(act, period)


@pytest.fixture
def foreign(board: Board) -> Callable[[str, Write], Foreign]:
    """Makes an operator that has written everything once, in its own way."""

    def make(name: str, write: Write) -> Foreign:
        board.create(name, [])
        made = Foreign(board.plane.requests(), name, write)
        made.write()
        assert made.is_as_it_says()
        return made

    return make


def asked_again(board: Board, operator: Foreign) -> bool:
    """Whether the checker has written to it twice, as the server counted."""
    done = [one for one in board.writes() if one.name == operator.name and one.code == 200]
    return len(done) >= 2


def recovered(board: Board, operator: Foreign) -> bool:
    """Whether the checker has said that it is back."""
    return any(event["reason"] == "OperatorRecovered" for event in board.events(operator.name))


@pytest.mark.slow
def test_who_puts_its_messages_back_is_asked_and_never_given_up_however_it_writes(
    board: Board, checker: StartOperator, foreign: Callable[[str, Write], Foreign]
) -> None:
    """By update, merge patch, forced apply; and who only writes everything again and again.

    One has no messages, and answers by removing ours. That moves no time on the server: it was
    asked hundreds of times in ten seconds.

    Writing what is already so does not count as a sign of life, because the server stores
    nothing: also the last one is asked once an interval, and its next round is the answer.
    """
    lookers = [
        foreign("updates", by_update),
        foreign("patches", by_merge_patch),
        foreign("applies-by-force", by_forced_apply),
    ]
    mute = foreign("mute", by_merge_patch)
    mute.saying = [without_message(one) for one in mute.saying]
    mute._write = by_removing
    mute.write()
    rewriter = foreign("rewrites", by_merge_patch)
    version = rewriter.get()["metadata"]["resourceVersion"]
    rewriter.write()
    assert rewriter.get()["metadata"]["resourceVersion"] == version, "the server stores nothing"

    with ExitStack() as stack:
        for operator in lookers:
            stack.enter_context(running(operator, 0.1, looks=True))
        stack.enter_context(running(mute, 0.05, looks=True))
        stack.enter_context(running(rewriter, 1.0, looks=False))
        began = time.monotonic()
        checker(*UNHURRIED)
        everybody = [*lookers, mute, rewriter]
        for operator in everybody:
            eventually(partial(asked_again, board, operator), f"{operator.name} is asked")
            eventually(operator.is_as_it_says, f"{operator.name} has answered")
    for operator in everybody:
        assert board.events(operator.name) == [], "neither given up nor recovered"
        reasons = {one["reason"] for one in operator.get()["status"]["conditions"]}
        assert reasons == {"AsExpected"}
    assert [operator.refused for operator in lookers if operator.name != "updates"] == [0, 0]
    asked = [one for one in board.writes() if one.name == "mute" and one.code == 200]
    assert len(asked) <= 1 + (time.monotonic() - began) / 5


@pytest.mark.slow
def test_an_apply_without_force_is_refused_from_the_first_challenge_on(
    board: Board, checker: StartOperator, foreign: Callable[[str, Write], Foreign]
) -> None:
    """It cannot answer nor say anything else until it forces: it is given up though it runs."""
    operator = foreign("gives-way", by_apply)
    checker(*QUICK)
    with running(operator, 0.1, looks=True):
        board.wait_given_up("gives-way")
        assert operator.refused > 0
        written = operator.written
        operator.saying = conditions("broken", Degraded="True")
        refused = operator.refused
        eventually(lambda: operator.refused > refused, "it tries to say so")
        assert operator.written == written, "but it may not"
        board.wait_given_up("gives-way")
        operator._write = by_forced_apply
        eventually(operator.is_as_it_says, "by force it is heard")
    eventually(partial(recovered, board, operator), "the checker notices")


@pytest.mark.slow
def test_who_writes_only_on_change_and_does_not_look_is_given_up_until_it_has_something_to_say(
    board: Board, checker: StartOperator, foreign: Callable[[str, Write], Foreign]
) -> None:
    """What it writes then decides how it comes back: whole at once, or with the next challenge."""
    whole = foreign("whole", by_merge_patch)
    single = foreign("single", by_merge_patch)
    checker(*QUICK)
    board.wait_given_up("whole")
    board.wait_given_up("single")

    whole.saying = conditions("something happened", Degraded="True")
    whole.write()
    assert whole.is_as_it_says()

    single.saying = conditions("something happened", Degraded="True")
    assert one_condition_by_merge_patch(single).ok

    def healed() -> bool:
        """Every condition has the status that its operator gave it last."""
        found = {one["type"]: one["status"] for one in single.get()["status"]["conditions"]}
        return found == {one["type"]: one["status"] for one in single.saying}

    eventually(healed, "the next challenge gives the others their status back")
    messages = {one["type"]: one["message"] for one in single.get()["status"]["conditions"]}
    assert messages["Available"].endswith("fine, says\nthe operator"), "and no word was lost"
    for operator in (whole, single):
        eventually(partial(recovered, board, operator), f"{operator.name} is seen to be alive")


@pytest.mark.slow
def test_who_applies_without_messages_is_not_asked_and_that_is_said_once(
    board: Board, checker: StartOperator, foreign: Callable[[str, Write], Foreign]
) -> None:
    """Its apply of what is already so cannot remove our text, so it could never answer."""
    operator = foreign("applies-no-message", by_apply_without_messages)
    dead = foreign("dead", by_merge_patch)
    process = checker(*QUICK)
    board.wait_given_up(dead.name)
    assert operator.is_as_it_says()
    assert not [one for one in board.writes() if one.name == operator.name]
    told = eventually(lambda: board.events(operator.name) or None, "an event")
    assert [(one["reason"], "its Lease" in one["note"]) for one in told] == [("CannotCheck", True)]
    assert process.metric(f'cluster_operator_cannot_be_checked{{name="{operator.name}"}}') == 1
