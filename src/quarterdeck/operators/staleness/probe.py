"""A challenge by hand: asks one operator for a sign of life now, and times its answer.

It puts nothing at risk. Only messages are changed, never a status; those that were not put back
in time are put back by us. The challenge is written under a name of its own, so even if this
process is killed in between, a checker takes it for a write like any other: a verdict is two
intervals away, as if the operator had just written.
"""

import asyncio
import time
from contextlib import aclosing
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.controller.metadata import fence
from quarterdeck.kube import Client, Conflict, Gone, NotFound
from quarterdeck.operators.staleness.evidence import Condition, Mark, conditions_of, raw_conditions
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS
from quarterdeck.status.staleness_marks import checking_message, original

FIELD_MANAGER = "quarterdeck-staleness-probe"
ATTEMPTS = 5


class Refused(Exception):  # noqa: N818 - reads as what happened
    """The operator cannot be probed now; the text says why."""


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """How one condition's message came back."""

    type: str
    seconds: float | None
    """None when it did not, in time."""


async def probe(client: Client, name: str, timeout: float) -> list[Answer]:
    """Challenge an operator, and say when each of its messages came back."""
    obj, began = await _challenge(client, name)
    answered: dict[str, float] = {}
    wanted = [one.type for one in conditions_of(obj)]
    try:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    await _follow(client, obj, wanted, answered, began)
                    break
                except Gone:
                    obj = await client.get(PLAIN_CLUSTER_OPERATORS, name)
    except TimeoutError:
        pass
    finally:
        if len(answered) < len(wanted):
            await _put_back(client, name)
    return [Answer(kind, round(answered[kind], 3) if kind in answered else None) for kind in wanted]


async def _challenge(client: Client, name: str) -> tuple[Object, float]:
    """The object with our challenge in it, and when that was sent."""
    for _ in range(ATTEMPTS):
        obj: Object = await client.get(PLAIN_CLUSTER_OPERATORS, name)
        _check(obj)
        changed = _with_messages(obj, lambda one: checking_message(one.message))
        began = time.monotonic()
        try:
            return await _write(client, obj, changed), began
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


async def _put_back(client: Client, name: str) -> None:
    """Take our own marks off again, where the operator has not."""
    for _ in range(ATTEMPTS):
        try:
            obj: Object = await client.get(PLAIN_CLUSTER_OPERATORS, name)
            if not any(one.mark is Mark.CHECKING for one in conditions_of(obj)):
                return
            await _write(client, obj, _with_messages(obj, _unmarked))
            return
        except Conflict:
            continue
        except NotFound:
            return


def _unmarked(one: Condition) -> str:
    return original(one.message) if one.mark is Mark.CHECKING else one.message


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
        field_manager=FIELD_MANAGER,
    )
