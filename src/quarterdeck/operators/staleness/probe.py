"""A challenge by hand: asks one operator for a sign of life now, and times its answer.

It puts nothing at risk, and leaves nothing behind. Only messages are changed, never a status; those
that were not put back in time are put back by us, also when this process is told to end, and who
owned a message owns it again. The challenge is written under a name of its own, which never proves
life to a checker. If this process is killed in between, a checker takes it for a challenge: a
verdict comes two intervals after the operator's last sign of life, at the earliest.
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
from quarterdeck.operators.staleness.evidence import Mark, conditions_of, raw_conditions
from quarterdeck.operators.staleness.give_back import given_back, restored
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS
from quarterdeck.status.staleness_marks import checking_message
from quarterdeck.status.writers import PROBE

ATTEMPTS = 5


class Refused(Exception):  # noqa: N818 - reads as what happened
    """The operator cannot be probed now; the text says why."""


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """How one condition's message came back."""

    type: str
    seconds: float | None
    """None when it did not, in time."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of a probe."""

    answers: list[Answer]
    put_back: bool
    """Whether messages were put back by us, because the operator did not do it in time."""


class Interrupted(Exception):  # noqa: N818 - reads as what happened
    """The process was told to end; the messages are put back."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}; the messages are put back")
        self.number = number


async def probe(client: Client, name: str, timeout: float) -> Outcome:
    """Challenge an operator, and say when each of its messages came back."""
    with _until_told_to_end():
        before, obj, began = await _challenge(client, name)
        answered: dict[str, float] = {}
        put_back = False
        try:
            await _watch_answers(client, obj, answered, began, timeout)
        finally:
            put_back = await _put_back(client, name, before)
    wanted = [one.type for one in conditions_of(obj)]
    return Outcome(
        [Answer(one, round(answered[one], 3) if one in answered else None) for one in wanted],
        put_back,
    )


@contextmanager
def _until_told_to_end() -> Iterator[None]:
    """Turn the first SIGTERM or SIGHUP into a cancellation, so that what is begun is undone."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    told: list[int] = []

    def end(number: int) -> None:
        told.append(number)
        if len(told) == 1 and task is not None:
            task.cancel()

    numbers = (signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, end, number)
    try:
        yield
    except asyncio.CancelledError:
        if told:
            raise Interrupted(told[0]) from None
        raise
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def _watch_answers(
    client: Client, obj: Object, answered: dict[str, float], began: float, timeout: float
) -> None:
    """Note the answers until all are there or the time is over."""
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
    """The object before and with our challenge in it, and when that was sent."""
    for _ in range(ATTEMPTS):
        obj: Object = await client.get(PLAIN_CLUSTER_OPERATORS, name)
        _check(obj)
        changed = _with_messages(obj, lambda one: checking_message(one.message))
        began = time.monotonic()
        try:
            return obj, await _write(client, obj, changed), began
        except Conflict:
            continue
    raise Refused(f"{name} is written all the time, so that nothing could be asked; try again")


def _check(obj: Object) -> None:
    name, conditions = obj["metadata"]["name"], list(conditions_of(obj))
    if not conditions:
        raise Refused(f"{name} has none of the four conditions; there is nothing to ask")
    marked = [one for one in conditions if one.mark]
    if not marked:
        return
    if all(one.mark is Mark.VERDICT for one in conditions):
        raise Refused(f"{name} is stale: nobody would answer; see: quarterdeck staleness explain")
    raise Refused(
        f"{name} stands challenged already, so the answer would be somebody else's; see when that "
        f"ends with: quarterdeck staleness explain {name}"
    )


async def _follow(
    client: Client, obj: Object, wanted: list[str], answered: dict[str, float], began: float
) -> None:
    """Note each message that comes back, until all have."""
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
    """Take our own marks off again, where the operator has not; whether there were any."""
    changed = False
    for _ in range(ATTEMPTS):
        try:
            obj: Object = await client.get(PLAIN_CLUSTER_OPERATORS, name)
            if any(one.mark is Mark.CHECKING for one in conditions_of(obj)):
                obj = await _write(client, obj, restored(obj, before))
                changed = True
            if (entries := given_back(obj, before)) is not None:
                await _write_entries(client, obj, entries)
            return changed
        except Conflict:
            continue
        except NotFound:
            return changed
    raise Refused(
        f"{name} is written all the time, so that its messages could not be put back; see: "
        f"quarterdeck staleness explain {name}"
    )


async def _write_entries(client: Client, obj: Object, entries: list[Object]) -> None:
    """Say who owns what; nothing else of the object changes.

    By the object itself: the server ignores managedFields that come by a subresource.
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
