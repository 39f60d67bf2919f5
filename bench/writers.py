"""Those who write: the user who creates and changes Widgets, and the bare client.

The bare client makes all writes that an operator would make, and does nothing else: no cache, no
queue, no thought. Nobody who works through the same server can be faster, so it is the measure for
those who do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from bench import widgets
from bench.api import Api

IN_FLIGHT = 32
"""How many requests the user has under way; more gained nothing where this was tried."""


async def create_widget(api: Api, index: int) -> str:
    """Create a Widget; its uid."""
    made = await api.create(widgets.COLLECTION, widgets.widget(index))
    uid: str = made["metadata"]["uid"]
    return uid


async def change_widget(api: Api, index: int, round_: int) -> int:
    """Put a Widget into another round; its generation."""
    changed = await api.patch(_widget(index), {"spec": {"round": round_}})
    generation: int = changed["metadata"]["generation"]
    return generation


async def bare_create(api: Api, index: int, uid: str) -> None:
    """Add all that an operator would add to a new Widget."""
    await api.create(widgets.CONFIG_MAPS, widgets.config_map(index, 0, uid))
    await _report(api, index, 1)


async def bare_change(api: Api, index: int, round_: int) -> None:
    """Change all that an operator would change in a Widget's new round."""
    path = f"{widgets.CONFIG_MAPS}/{widgets.name_of(index)}"
    await api.patch(path, {"data": {"round": str(round_)}})
    await _report(api, index, 1 + round_)


async def bare_apply(api: Api, index: int, round_: int, uid: str) -> None:
    """The same changes, the ConfigMap's by server-side apply."""
    path = f"{widgets.CONFIG_MAPS}/{widgets.name_of(index)}"
    await api.apply(path, widgets.config_map(index, round_, uid))
    await _report(api, index, 1 + round_)


async def for_all(
    indexes: Iterable[int], act: Callable[[int], Awaitable[object]], in_flight: int = IN_FLIGHT
) -> None:
    """Act on each index, so many at a time."""
    remaining = iter(indexes)

    async def work() -> None:
        for index in remaining:
            await act(index)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(in_flight):
            tasks.create_task(work())


async def _report(api: Api, index: int, generation: int) -> None:
    await api.patch(f"{_widget(index)}/status", {"status": widgets.status(index, generation)})


def _widget(index: int) -> str:
    return f"{widgets.COLLECTION}/{widgets.name_of(index)}"
