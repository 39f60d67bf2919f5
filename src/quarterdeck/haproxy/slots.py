"""Assigns endpoints to the server slots of a backend. Pure.

An endpoint keeps its slot while it exists. A backend has more slots than endpoints, so that HAProxy
can be told of new ones while it runs.
"""

from collections.abc import Collection

from quarterdeck.haproxy.model import Endpoint

Slots = tuple[Endpoint | None, ...]

_FEWEST_SLOTS = 4


def fresh_slots(endpoints: Collection[Endpoint]) -> Slots:
    """Slots for these endpoints with room for half as many again, a multiple of four."""
    ordered = sorted(set(endpoints))
    wanted = max(_FEWEST_SLOTS, len(ordered) + (len(ordered) + 1) // 2)
    count = -(-wanted // _FEWEST_SLOTS) * _FEWEST_SLOTS
    return (*ordered, *(None for _ in range(count - len(ordered))))


def reassigned(slots: Slots, endpoints: Collection[Endpoint]) -> Slots | None:
    """The slots with exactly these endpoints in them; None if there are too few slots.

    A new endpoint gets a slot that was free before, if there is one: then it is ready before the
    one that it replaces leaves, and the backend is never empty.
    """
    wanted = set(endpoints)
    kept = [slot if slot in wanted else None for slot in slots]
    new = sorted(wanted.difference(slot for slot in kept if slot))
    free = [number for number, slot in enumerate(slots) if slot is None]
    left = [number for number, slot in enumerate(kept) if slot is None and slots[number]]
    places = [*free, *left][: len(new)]
    if len(places) < len(new):
        return None
    for number, endpoint in zip(places, new, strict=True):
        kept[number] = endpoint
    return tuple(kept)
