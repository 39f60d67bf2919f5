"""Caches and controllers that start and stop while the operator runs.

For an operator that can be switched off and then watches only its switch, or for a part of an
operator that needs a kind which not every cluster has. `setup` makes the group, and a reconcile
starts and stops it.

    routes = manager.group("routes")
    wanted = routes.objects(ROUTES, writes=["status"])
    routes.add(Controller("route", reconcile_route, [Watch(wanted)]))

    async def reconcile_switch(key: Key) -> Result:
        routes.start() if is_on(switch.get(key)) else routes.stop()
        return DONE

`start` and `stop` can be called any number of times and from anywhere, the group's own controllers
included; they return at once. No event is lost: a controller starts when its caches are synced, and
reconciles every object in them. A cache that others hold too runs on.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Any

from quarterdeck.controller.controller_set import ControllerSet, OperatorContext
from quarterdeck.controller.tasks import guarded
from quarterdeck.kube import Cache
from quarterdeck.log import get_logger

log = get_logger("controller.group")


class Group(ControllerSet):
    """Caches and controllers of an operator that start and stop together."""

    def __init__(
        self, name: str, common: OperatorContext, always: Callable[[], Collection[Cache[Any]]]
    ) -> None:
        """The group's controllers may also watch the caches of `always`, the manager's."""
        super().__init__(common)
        self.name = name
        self._always = always
        self._wanted = False
        self._changed = asyncio.Event()

    def start(self) -> None:
        """Fill the caches, then run the controllers; return at once."""
        self._want(wanted=True)

    def stop(self) -> None:
        """Let running reconciles finish, then empty the caches; return at once."""
        self._want(wanted=False)

    @property
    def started(self) -> bool:
        """Whether the controllers run."""
        return bool(self._running)

    @property
    def trouble(self) -> str:
        """What a started group waits for, in one line; empty if it waits for nothing."""
        return self._cache_trouble if self._wanted else ""

    async def run(self, leading: asyncio.Event) -> None:
        """Start and stop the group on request until cancelled; raise what ends the process."""
        caches = self._common.shared.caches
        while True:
            await self._until(wanted=True)
            for key in self._caches:
                caches.hold(key)
            try:
                await self._run_once(leading)
            finally:
                self._remove_controllers()
                for key in self._caches:
                    caches.release(key)
            log.info("group stopped", group=self.name)

    async def _run_once(self, leading: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as tasks:
            name = f"start of {self.name}"
            work = self._begin(tasks, leading)
            beginning = tasks.create_task(guarded(name, work), name=name)
            # A task that is cancelled before it starts never awaits `work`, and Python would warn.
            beginning.add_done_callback(lambda _: work.close())
            await self._until(wanted=False)
            beginning.cancel()
            self.stop_reconciles()

    async def _begin(self, tasks: asyncio.TaskGroup, leading: asyncio.Event) -> None:
        await self._wait_until_synced()
        log.info("group started", group=self.name, caches=len(self._caches))
        self._launch(tasks, leader=False)
        await leading.wait()
        await self._wait_until_recent()
        self._launch(tasks, leader=True)

    def _watchable_caches(self) -> Collection[Cache[Any]]:
        return [*super()._watchable_caches(), *self._always()]

    def _want(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._changed.set()

    async def _until(self, *, wanted: bool) -> None:
        while self._wanted is not wanted:
            self._changed.clear()
            await self._changed.wait()
