"""One identity at the API server: its client, its caches and its rights.

All sessions with the same credentials share one account, so a hundred viewers cost the API server
one watch for each kind. Nothing is shared between different credentials.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from quarterdeck.api.meta import Object, Resource, foreign
from quarterdeck.console.condition_changes import ConditionChange, condition_changes
from quarterdeck.console.rights import Action, Permission, Rights
from quarterdeck.controller.tasks import endless
from quarterdeck.kube import ApiError, Cache, Change, Client, KubeError, Unauthorized
from quarterdeck.kube.cache import WATCH_GRACE_PERIOD

IDENTITY_REVIEWS = foreign(
    "authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False
)
RIGHT_TIMEOUT = 10.0
FIRST_LIST_TIMEOUT = 10.0
LINGER = 60.0
"""Seconds for which a cache runs on after its last use."""
HISTORY = 20
"""How many changes of an operator's conditions are remembered."""


class Unreadable(Exception):  # noqa: N818 - reads as what happened
    """What a page needs cannot be read; the message says why, for people."""


class Unanswered(Unreadable):
    """The API server does not answer, so what is known is too old to show."""


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that one cache holds."""

    resource: Resource[Any]
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    keep_managed_fields: bool = False
    """Whether all managedFields are needed: they say who wrote what."""
    keep_running: bool = False
    """Whether the cache runs as long as the account, because changes are remembered."""

    def action(self, verb: str) -> Action:
        """The right that the cache needs."""
        return Action(verb=verb, resource=self.resource, namespace=self.namespace, name=self.name)


class _Held:
    """A cache that runs, and how many pages use it."""

    def __init__(self, cache: Cache[Any], task: "asyncio.Task[None]") -> None:
        self.cache = cache
        self.task = task
        self.users = 0
        self.began = self.used = time.monotonic()
        self.followed: tuple[float, datetime] | None = None
        """Since when no change was missed, by both clocks: asked again, it is the same time."""


class ConsoleAccount:
    """One identity; close it when its last session has ended."""

    def __init__(self, client: Client, user: str) -> None:
        self.client = client
        self.user = user
        self.ended = asyncio.Event()
        """Set when the API server no longer accepts the credentials."""
        self.history: dict[str, deque[ConditionChange]] = {}
        self.feeds: dict[str, Any] = {}
        self.judged: dict[str, Any] = {}
        """The operators by name: the object, and its health."""
        self.rows: dict[str, Any] = {}
        """The rows of the overview, by name, with the health that they show."""
        self.rendered_rows: dict[Any, str] = {}
        """The rows of the overview, by what they show."""
        self.next_versions: dict[Any, tuple[float, Any]] = {}
        """What updates of Subscriptions change, and when it was read, by what it follows from."""
        self.rights = Rights(client, user)
        self._held: dict[Selected, _Held] = {}
        self._starting: dict[Selected, asyncio.Lock] = {}

    async def close(self) -> None:
        """End all watches, and close all connections."""
        self.ended.set()
        self.rights.close()
        for held in self._held.values():
            held.task.cancel()
        await asyncio.gather(*(held.task for held in self._held.values()), return_exceptions=True)
        self._held.clear()
        await self.client.close()

    async def may(self, action: Action) -> Permission:
        """Whether the person may do this, as the API server says."""
        return await self.rights.may(action)

    async def find(self, resource: Resource[Any], name: str, namespace: str = "") -> Any:
        """The object; None if it or its kind does not exist, or may not be read."""
        try:
            return await self.client.find(resource, name, namespace)
        except ApiError as error:
            if error.code == 403:
                return None
            raise

    async def objects(self, selected: Selected, timeout: float = FIRST_LIST_TIMEOUT) -> Cache[Any]:
        """The cache of these objects, filled and current.

        `Unreadable` if the person may not list them, now: a right can be taken away while the
        cache runs. `Unanswered` if the cache lost its watch.
        """
        if selected in self._held:
            right = await self._may_list(selected)
        else:
            # Both are needed soon: asked about together, they take the time of one.
            right, _ = await asyncio.gather(
                self._may_list(selected), self._prefetch(selected.action("watch"))
            )
        if not right.allowed:
            self._drop(selected)
            raise Unreadable(right.reason)
        lock = self._starting.setdefault(selected, asyncio.Lock())
        async with lock:
            held = self._held.get(selected)
            if held is None or held.task.done():
                held = await self._start(selected)
        held.used = time.monotonic()
        try:
            async with asyncio.timeout(timeout):
                await held.cache.wait_answered()
        except TimeoutError:
            why = held.cache.trouble or "the API server does not answer"
            raise Unanswered(f"{selected.resource.plural} cannot be read: {why}") from None
        if held.cache.lost_for > WATCH_GRACE_PERIOD:
            why = held.cache.trouble or "the API server does not answer"
            raise Unanswered(f"{selected.resource.plural} are not followed any more: {why}")
        return held.cache

    async def _may_list(self, selected: Selected) -> Permission:
        """Whether the person may list these; a short outage does not change the last answer."""
        action = selected.action("list")
        known = self.rights.last(action)
        try:
            async with asyncio.timeout(RIGHT_TIMEOUT):
                return await self.may(action)
        except Unauthorized:
            raise
        except (KubeError, TimeoutError) as error:
            if known is not None and known[0] < WATCH_GRACE_PERIOD:
                return known[1]
            why = str(error) or "the API server does not answer"
            raise Unanswered(f"{selected.resource.plural} cannot be read: {why}") from None

    async def _prefetch(self, action: Action) -> None:
        """Ask about a right that is needed later; whoever needs it sees the fault."""
        with contextlib.suppress(KubeError):
            await self.may(action)

    def _drop(self, selected: Selected) -> None:
        """Stop a cache and forget its objects."""
        held = self._held.pop(selected, None)
        if held is not None:
            held.task.cancel()

    async def _start(self, selected: Selected) -> _Held:
        resource = selected.resource
        right = await self.may(selected.action("watch"))
        if not right.allowed:
            raise Unreadable(right.reason)
        cache: Cache[Any] = Cache(
            self.client,
            resource,
            namespace=selected.namespace,
            name=selected.name,
            field_selector=selected.field_selector,
            keep_all_managed_fields=selected.keep_managed_fields,
        )
        name = f"console cache of {resource.plural}"
        held = _Held(cache, asyncio.create_task(endless(name, cache.run()), name=name))
        self._held[selected] = held
        if resource.plural == "clusteroperators":
            cache.subscribe(self._remember)
        return held

    def _remember(self, change: Change[Object]) -> None:
        """Remember how the conditions of an operator changed."""
        if change.new is not None:
            found = self.history.setdefault(change.key.name, deque(maxlen=HISTORY))
            found.extendleft(condition_changes(change.old, change.new, self.client.now()))

    def followed_since(self, selected: Selected) -> datetime | None:
        """Since when no change of these objects was missed; None if they are not followed."""
        held = self._held.get(selected)
        if held is None:
            return None
        began = max(held.began, held.cache.watched_since)
        if held.followed is None or held.followed[0] != began:
            past = timedelta(seconds=time.monotonic() - began)
            held.followed = (began, (self.client.now() - past).replace(microsecond=0))
        return held.followed[1]

    @contextlib.asynccontextmanager
    async def holding(
        self, selections: "tuple[Selected, ...]", changed: Callable[[], None]
    ) -> AsyncIterator[None]:
        """Keep these caches running, and call `changed` at each change, while the context lasts.

        Those that may not be watched are left out.
        """
        held: list[_Held] = []
        with contextlib.ExitStack() as stack:
            for selected in selections:
                try:
                    cache = await self.objects(selected)
                except (Unreadable, KubeError):
                    continue
                one = self._held.get(selected)
                if one is None or one.cache is not cache:
                    continue  # another page was just told that it may not be read
                one.users += 1
                held.append(one)
                stack.callback(cache.subscribe(lambda _: changed()))
            try:
                yield
            finally:
                for one in held:
                    one.users -= 1
                    one.used = time.monotonic()

    def end_unused(self) -> None:
        """Stop the caches that no page has used for a while."""
        now = time.monotonic()
        for selected, held in list(self._held.items()):
            unused = not held.users and now - held.used > LINGER
            if unused and not selected.keep_running:
                self._drop(selected)

    def watches(self) -> int:
        """How many watches run."""
        return len(self._held)


async def who_is(client: Client) -> str:
    """The name of the user whose credentials the client has; raises `Unauthorized` and others."""
    answer = await client.create(
        IDENTITY_REVIEWS,
        {"apiVersion": IDENTITY_REVIEWS.api_version, "kind": IDENTITY_REVIEWS.kind, "metadata": {}},
    )
    user: str = ((answer.get("status") or {}).get("userInfo") or {}).get("username") or "unknown"
    return user
