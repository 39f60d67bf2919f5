"""A challenge by hand: asks one operator for a sign of life now, and measures its answer.

A probe changes only messages, never a status. It restores the messages that the operator does not
restore in time, also after a signal, and gives their ownership back. It writes under its own field
manager, which never proves life to a checker. If this process is killed before it restores the
messages, a checker treats them as a challenge: a verdict comes two intervals after the operator's
last sign of life, at the earliest.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import aclosing, contextmanager, suppress
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.controller.metadata import fence
from quarterdeck.kube import (
    Client,
    Conflict,
    ConnectionFailed,
    Deleted,
    Gone,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
)
from quarterdeck.operators.staleness.evidence import (
    StalenessMark,
    WatchedCondition,
    conditions_of,
    raw_conditions,
)
from quarterdeck.operators.staleness.explain import CANNOT_ANSWER
from quarterdeck.operators.staleness.give_back import challenged_by_probe, given_back, restored
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS
from quarterdeck.status.staleness_marks import checking_message
from quarterdeck.status.writers import PROBE, cannot_answer

ATTEMPTS = 5
PUT_BACK_TIMEOUT = 15.0
"""Seconds for which the probe tries to restore the messages."""
RETRY_PAUSE = 0.2
"""Seconds between two tries, and between two watches."""
T = TypeVar("T")


class ProbeRefused(Exception):  # noqa: N818 - reads as what happened
    """The operator cannot be probed now; the text gives the reason."""


class ProbeFailed(Exception):  # noqa: N818 - reads as what happened
    """The probe ended early; the text gives the reason and what it left behind."""


class ConditionAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """How soon the operator restored one condition's message."""

    type: str
    seconds: float | None
    """None if it did not do so in time."""


class Aftermath(StrEnum):
    """Who ended the challenge on the conditions that were not answered in time."""

    PUT_BACK = "put back by us"
    ANSWERED_LATE = "put back by the operator right after that"
    GIVEN_UP = "given up by a checker meanwhile"


class ProbeResult(msgspec.Struct, frozen=True):
    """The operator's answers to a probe."""

    answers: list[ConditionAnswer]
    aftermath: Aftermath

    @property
    def put_back(self) -> bool:
        """Whether the probe restored messages, because the operator did not do so in time."""
        return self.aftermath is Aftermath.PUT_BACK


class Interrupted(Exception):  # noqa: N818 - reads as what happened
    """A signal ended the probe; the messages are restored."""

    def __init__(self, number: int, *, asked: bool) -> None:
        left = "the messages are put back" if asked else "nothing was asked"
        super().__init__(f"ended by {signal.Signals(number).name}; {left}")
        self.number = number


class _SignalError(Exception):
    """A signal came while the probe waited."""


class _Signals:
    """Keeps the first signal that ends the probe, and ignores later ones."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._received = asyncio.Event()

    def end(self, number: int) -> None:
        if self.number is None:
            self.number = number
            self._received.set()

    async def or_signal(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work; a signal cancels the work and raises `_SignalError`."""
        working = asyncio.ensure_future(work)
        received = asyncio.ensure_future(self._received.wait())
        try:
            await asyncio.wait((working, received), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise _SignalError
        finally:
            received.cancel()
            if not working.done():
                working.cancel()
                with suppress(asyncio.CancelledError, KubeError):
                    await working


async def probe(client: Client, name: str, timeout: float) -> ProbeResult:
    """Challenge an operator, and return how soon it restored each message.

    A signal ends the wait for answers. It never cancels a write: nobody would know then whether the
    server has carried it out.
    """
    asked = False
    with _signals() as signals:
        try:
            before, obj, began = await _challenge(client, name, signals)
            asked = True
            answered: dict[str, float] = {}
            try:
                await signals.or_signal(_watch_answers(client, obj, answered, began, timeout))
            finally:
                aftermath = await _put_back(client, before)
        except _SignalError:
            raise Interrupted(signals.number or 0, asked=asked) from None
    wanted = _types(obj)
    return ProbeResult(
        [
            ConditionAnswer(one, round(answered[one], 3) if one in answered else None)
            for one in wanted
        ],
        aftermath,
    )


@contextmanager
def _signals() -> Iterator[_Signals]:
    """Receive Ctrl-C, SIGTERM and SIGHUP."""
    loop, signals = asyncio.get_running_loop(), _Signals()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, signals.end, number)
    try:
        yield signals
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _challenge(client: Client, name: str, signals: _Signals) -> tuple[Object, Object, float]:
    """The object before the challenge and with it, and the time of the request."""
    for _ in range(ATTEMPTS):
        obj: Object = await signals.or_signal(client.get(PLAIN_CLUSTER_OPERATORS, name))
        _check(obj)
        changed = _with_messages(obj, lambda one: checking_message(one.message))
        began = time.monotonic()
        try:
            return obj, await _write(client, obj, changed), began
        except Conflict:
            continue
        except (ConnectionFailed, ServerError):
            # The server may have carried out the request.
            await _put_back(client, obj)
            raise
    raise ProbeRefused(f"{name} is written all the time, so that nothing could be asked; try again")


def _check(obj: Object) -> None:
    name, conditions = obj["metadata"]["name"], list(conditions_of(obj))
    if not conditions:
        raise ProbeRefused(f"{name} has none of the four conditions; there is nothing to ask")
    if cannot_answer(obj):
        raise ProbeRefused(f"{name} cannot be checked: {CANNOT_ANSWER}")
    marked = [one for one in conditions if one.mark]
    if not marked:
        return
    if all(one.mark is StalenessMark.VERDICT for one in conditions):
        raise ProbeRefused(
            f"{name} is stale: nobody would answer; see: quarterdeck staleness explain {name}"
        )
    raise ProbeRefused(
        f"{name} is challenged already, so its answer would not be to this probe; see when that "
        f"ends with: quarterdeck staleness explain {name}"
    )


async def _watch_answers(
    client: Client, obj: Object, answered: dict[str, float], began: float, timeout: float
) -> None:
    """Record the answers until all are there or the time is over."""
    name = obj["metadata"]["name"]
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while True:
                try:
                    await _follow(client, obj, answered, began)
                    return
                except Gone:
                    obj = await client.get(PLAIN_CLUSTER_OPERATORS, name)


async def _follow(client: Client, obj: Object, answered: dict[str, float], began: float) -> None:
    """Record each message that the operator restores, until it has restored all."""
    name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
    version, wanted = obj["metadata"]["resourceVersion"], _types(obj)
    _note(obj, answered, began)
    while len(answered) < len(wanted):
        events = client.watch(PLAIN_CLUSTER_OPERATORS, name=name, resource_version=version)
        async with aclosing(events):
            async for event in events:
                found: Any = getattr(event, "object", None)
                if not isinstance(found, dict):
                    continue
                if isinstance(event, Deleted) or found["metadata"]["uid"] != uid:
                    raise ProbeFailed(f"{name} was deleted while it was asked")
                _note(found, answered, began)
                if len(answered) == len(wanted):
                    return
                version = found["metadata"]["resourceVersion"]
        await asyncio.sleep(RETRY_PAUSE)


def _types(obj: Object) -> list[str]:
    """The types of the watched conditions, each once: an atomic list may repeat one."""
    return list(dict.fromkeys(one.type for one in conditions_of(obj)))


def _note(obj: Object, answered: dict[str, float], began: float) -> None:
    for one in conditions_of(obj):
        if not one.mark:
            answered.setdefault(one.type, time.monotonic() - began)


async def _put_back(client: Client, before: Object) -> Aftermath:
    """Remove the challenge that the operator left, if there is any."""
    name, found = before["metadata"]["name"], Aftermath.ANSWERED_LATE
    why: KubeError | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout(PUT_BACK_TIMEOUT):
            while True:
                try:
                    obj: Object = await client.get(PLAIN_CLUSTER_OPERATORS, name)
                    if obj["metadata"]["uid"] != before["metadata"]["uid"]:
                        return found
                    if challenged_by_probe(obj):
                        # The server may carry out a request whose answer is lost.
                        found = Aftermath.PUT_BACK
                        obj = await _write(client, obj, restored(obj, before))
                    if (entries := given_back(obj, before)) is not None:
                        await _write_entries(client, obj, entries)
                    if any(one.mark is StalenessMark.VERDICT for one in conditions_of(obj)):
                        return Aftermath.GIVEN_UP
                    return found
                except NotFound:
                    return found
                except Conflict as error:
                    why = error  # try again at once
                except (ConnectionFailed, ServerError, TooManyRequests) as error:
                    why = error
                    await asyncio.sleep(RETRY_PAUSE)
    raise ProbeFailed(
        f"the messages of {name} could not be put back ({why or 'no answer'}): the challenge may "
        "still stand there, and a checker gives the operator up if it does not answer; see: "
        f"quarterdeck staleness explain {name}"
    )


async def _write_entries(client: Client, obj: Object, entries: list[Object]) -> None:
    """Write the managedFields, and nothing else.

    The request goes to the object itself: the server ignores managedFields in a subresource.
    """
    await client.patch(
        PLAIN_CLUSTER_OPERATORS,
        obj["metadata"]["name"],
        {"metadata": {**fence(obj), "managedFields": entries}},
        field_manager=PROBE,
    )


def _with_messages(obj: Object, message: Callable[[WatchedCondition], str]) -> list[Any]:
    conditions = list(raw_conditions(obj))
    for one in conditions_of(obj):
        conditions[one.position] = conditions[one.position] | {"message": message(one)}
    return conditions


async def _write(client: Client, obj: Object, conditions: list[Any]) -> Object:
    return await client.patch(
        PLAIN_CLUSTER_OPERATORS,
        obj["metadata"]["name"],
        {"metadata": fence(obj), "status": {"conditions": conditions}},
        subresource="status",
        field_manager=PROBE,
    )
