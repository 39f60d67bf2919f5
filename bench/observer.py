"""Watches Widgets and ConfigMaps, and knows when what was asked for is done."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Self

from bench import widgets
from bench.api import Api
from bench.processes import SubjectFailed
from bench.settlement import Settlement


class Observer:
    """What the server told so far."""

    def __init__(self) -> None:
        self.settlement = Settlement()
        self._wanted = 0
        self._done = asyncio.Event()
        self._first_at = self._done_at = 0.0
        self._fault = ""
        self._awaited: dict[tuple[str, str], asyncio.Future[float]] = {}

    @classmethod
    @contextlib.asynccontextmanager
    async def watching(cls, api: Api) -> AsyncIterator[Self]:
        """An observer that watches during the block."""
        observer = cls()
        observer.settlement.widget_version = await _version(api, widgets.COLLECTION)
        observer.settlement.config_map_version = await _version(api, widgets.CONFIG_MAPS)
        tasks = [
            asyncio.create_task(observer._follow_widgets(api)),
            asyncio.create_task(observer._follow_config_maps(api)),
        ]
        for task in tasks:
            task.add_done_callback(observer._ended)
        try:
            yield observer
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def expect(self, objects: int, round_: int) -> None:
        """From now on, so many objects are to settle in this round."""
        if round_ != self.settlement.round:
            self.settlement.want(round_)
        self._wanted = objects
        self._first_at = 0.0
        self._done.clear()
        self._judge()

    async def done(self, limit: float) -> float:
        """When all objects had settled, by the monotonic clock."""
        try:
            async with asyncio.timeout(limit):
                await self._done.wait()
        except TimeoutError:
            reached = f"{self.settlement.settled} of {self._wanted}"
            raise SubjectFailed(f"{reached} objects settled within {limit:g} s") from None
        if self._fault:
            raise SubjectFailed(self._fault)
        return self._done_at

    @property
    def first_at(self) -> float:
        """When the first ConfigMap of the round was seen, by the monotonic clock."""
        return self._first_at

    def config_map_at(self, name: str, round_: int) -> "asyncio.Future[float]":
        """When a ConfigMap is seen in a round that it is not in yet."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._awaited[name, str(round_)] = future
        return future

    async def _follow_widgets(self, api: Api) -> None:
        # The server closes a watch whose reader is slow; what it did not send comes then.
        while True:
            async for lines in api.lines(widgets.COLLECTION, self.settlement.widget_version):
                for line in lines:
                    self.settlement.widget_event(line)
                self._judge()

    async def _follow_config_maps(self, api: Api) -> None:
        while True:
            version = self.settlement.config_map_version
            async for lines in api.lines(widgets.CONFIG_MAPS, version):
                now = time.monotonic()
                for line in lines:
                    seen = self.settlement.config_map_event(line)
                    if not self._first_at and seen[1] == str(self.settlement.round):
                        self._first_at = now
                    if self._awaited and (future := self._awaited.pop(seen, None)):
                        future.set_result(now)
                self._judge()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """An observer that cannot watch must not look like a subject that does nothing."""
        if not task.cancelled() and (error := task.exception()):
            self._fault = f"the observer failed: {error!r}"
            self._judge()

    def _judge(self) -> None:
        if self._fault or (self.settlement.settled >= self._wanted and not self._done.is_set()):
            self._done_at = time.monotonic()
            self._done.set()


async def _version(api: Api, collection: str) -> str:
    listed = await api.get(f"{collection}?limit=1")
    version: str = listed["metadata"]["resourceVersion"]
    return version
