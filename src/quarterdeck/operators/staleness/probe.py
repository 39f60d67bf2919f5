"""A challenge by hand: asks one operator for a sign of life now, and measures its answer.

A probe changes only messages, never a status. It restores the messages that the operator does not
restore in time, also on SIGTERM, and gives their ownership back. It writes under a field manager of
its own, which never proves life to a checker. If this process is killed before it restores the
messages, a checker treats them as a challenge: a verdict comes two intervals after the operator's
last sign of life, at the earliest.
"""

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.controller.metadata import fence
from quarterdeck.kube import Client, Conflict, Gone, NotFound
from quarterdeck.operators.staleness.evidence import StalenessMark, conditions_of, raw_conditions
from quarterdeck.operators.staleness.give_back import given_back, restored
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS
from quarterdeck.status.staleness_marks import checking_message
from quarterdeck.status.writers import PROBE

ATTEMPTS = 5


class ProbeRefused(Exception):  # noqa: N818 - reads as what happened
    """The operator cannot be probed now; the text gives the reason."""


class ConditionAnswer(msgspec.Struct, frozen=True, rename="camel"):
    """How soon the operator restored one condition's message."""

    type: str
    seconds: float | None
    """None if it did not do so in time."""


class ProbeResult(msgspec.Struct, frozen=True):
    """The operator's answers to a probe."""

    answers: list[ConditionAnswer]
    put_back: bool
    """Whether the probe restored messages, because the operator did not do so in time."""


class Interrupted(Exception):  # noqa: N818 - reads as what happened
    """A signal ended the probe; the messages are restored."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}; the messages are put back")
        self.number = number


async def probe(client: Client, name: str, timeout: float) -> ProbeResult:
    """Challenge an operator, and return how soon it restored each message."""
    with _cancelled_by_signals():
        before, obj, began = await _challenge(client, name)
        answered: dict[str, float] = {}
        put_back = False
        try:
            await _watch_answers(client, obj, answered, began, timeout)
        finally:
            put_back = await _put_back(client, name, before)
    wanted = [one.type for one in conditions_of(obj)]
    return ProbeResult(
        [
            ConditionAnswer(one, round(answered[one], 3) if one in answered else None)
            for one in wanted
        ],
        put_back,
    )


@contextmanager
def _cancelled_by_signals() -> Iterator[None]:
    """Cancel the task at the first SIGTERM or SIGHUP, so that it restores the messages."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    received: list[int] = []

    def end(number: int) -> None:
        received.append(number)
        if len(received) == 1 and task is not None:
            task.cancel()

    numbers = (signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, end, number)
    try:
        yield
    except asyncio.CancelledError:
        if received:
            raise Interrupted(received[0]) from None
        raise
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _watch_answers(
    client: Client, obj: Object, answered: dict[str, float], began: float, timeout: float
) -> None:
    """Record the answers until all are there or the time is over."""
    name, wanted = obj["metadata"]["name"], [one.type for one in conditions_of(obj)]
    try:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    await _follow(client, obj, wanted, answered, began)
                    break
                except Gone:
                    obj = await client.get(PLAIN_CLUSTER_OPERATORS, name)
    except TimeoutError:
        return


async def _challenge(client: Client, name: str) -> tuple[Object, Object, float]:
    """The object before the challenge and with it, and the time of the request."""
    for _ in range(ATTEMPTS):
        obj: Object = await client.get(PLAIN_CLUSTER_OPERATORS, name)
        _check(obj)
        changed = _with_messages(obj, lambda one: checking_message(one.message))
        began = time.monotonic()
        try:
            return obj, await _write(client, obj, changed), began
        except Conflict:
            continue
    raise ProbeRefused(f"{name} is written all the time, so that nothing could be asked; try again")


def _check(obj: Object) -> None:
    name, conditions = obj["metadata"]["name"], list(conditions_of(obj))
    if not conditions:
        raise ProbeRefused(f"{name} has none of the four conditions; there is nothing to ask")
    marked = [one for one in conditions if one.mark]
    if not marked:
        return
    if all(one.mark is StalenessMark.VERDICT for one in conditions):
        raise ProbeRefused(
            f"{name} is stale: nobody would answer; see: quarterdeck staleness explain"
        )
    raise ProbeRefused(
        f"{name} stands challenged already, so the answer would be somebody else's; see when that "
        f"ends with: quarterdeck staleness explain {name}"
    )


async def _follow(
    client: Client, obj: Object, wanted: list[str], answered: dict[str, float], began: float
) -> None:
    """Record each message that the operator restores, until it has restored all."""
    name, version = obj["metadata"]["name"], obj["metadata"]["resourceVersion"]
    while True:
        _note(obj, answered, began)
        if len(answered) == len(wanted):
            return
        events = client.watch(PLAIN_CLUSTER_OPERATORS, name=name, resource_version=version)
        async with aclosing(events):
            async for event in events:
                found: Any = getattr(event, "object", None)
                if not isinstance(found, dict):
                    continue
                _note(found, answered, began)
                if len(answered) == len(wanted):
                    return
                version = found["metadata"]["resourceVersion"]


def _note(obj: Object, answered: dict[str, float], began: float) -> None:
    for one in conditions_of(obj):
        if not one.mark:
            answered.setdefault(one.type, time.monotonic() - began)


async def _put_back(client: Client, name: str, before: Object) -> bool:
    """Remove the challenge that the operator left; True if there was any."""
    changed = False
    for _ in range(ATTEMPTS):
        try:
            obj: Object = await client.get(PLAIN_CLUSTER_OPERATORS, name)
            if any(one.mark is StalenessMark.CHECKING for one in conditions_of(obj)):
                obj = await _write(client, obj, restored(obj, before))
                changed = True
            if (entries := given_back(obj, before)) is not None:
                await _write_entries(client, obj, entries)
            return changed
        except Conflict:
            continue
        except NotFound:
            return changed
    raise ProbeRefused(
        f"{name} is written all the time, so that its messages could not be put back; see: "
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


def _with_messages(obj: Object, message: Any) -> list[Any]:
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
