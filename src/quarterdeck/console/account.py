"""One identity at the API server: its client, its caches and its rights.

All sessions with the same credentials share one account, so a hundred viewers cost the API server
one watch for each kind. Nothing is shared between different credentials.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from quarterdeck.api.meta import Object, Resource, foreign
from quarterdeck.api.times import format_time
from quarterdeck.controller.tasks import endless
from quarterdeck.kube import ApiError, Cache, Change, Client, KubeError, NotFound, Unauthorized
from quarterdeck.kube.cache import WATCH_GRACE_PERIOD

ACCESS_REVIEWS = foreign(
    "authorization.k8s.io/v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    namespaced=False,
)
IDENTITY_REVIEWS = foreign(
    "authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False
)
RIGHT_LIFETIME = 15.0
"""Seconds for which an answer about a right is reused."""
RIGHT_TIMEOUT = 10.0
FIRST_LIST_TIMEOUT = 10.0
LINGER = 60.0
"""Seconds for which a cache runs on after its last use."""
HISTORY = 20
"""How many changes of an operator's conditions are remembered."""


class Right(msgspec.Struct, frozen=True):
    """Whether something is allowed, and if not, why."""

    allowed: bool
    reason: str = ""


class Unreadable(Exception):  # noqa: N818 - reads as what happened
    """What a page needs cannot be read; the message says why, for people."""


class Unanswered(Unreadable):
    """The API server does not answer, so what is known is too old to show."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """A verb on an object or a kind, as a right is about it."""

    verb: str
    resource: Resource[Any]
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def text(self) -> str:
        """The action for people: `patch clusterversions.config.openshift.io`."""
        kind = self.resource.plural + (f".{self.resource.group}" if self.resource.group else "")
        kind += f"/{self.subresource}" if self.subresource else ""
        return f"{self.verb} {kind}" + (f" in {self.namespace}" if self.namespace else "")

    @property
    def attributes(self) -> Object:
        """The action as the API server's question has it."""
        given = {
            "verb": self.verb,
            "group": self.resource.group,
            "resource": self.resource.plural,
            "namespace": self.namespace,
            "name": self.name,
            "subresource": self.subresource,
        }
        return {name: value for name, value in given.items() if value}


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that one cache holds."""

    resource: Resource[Any]
    namespace: str = ""
    name: str = ""
    field_selector: str = ""


class ConditionChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a condition that this console saw."""

    type: str
    before: str
    after: str
    at: str


class _Held:
    """A cache that runs, and how many pages use it."""

    def __init__(self, cache: Cache[Any], task: "asyncio.Task[None]") -> None:
        self.cache = cache
        self.task = task
        self.users = 0
        self.used = time.monotonic()


class Account:
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
        self.rendered_rows: dict[Any, str] = {}
        """The rows of the overview, by what they show."""
        self._rights: dict[Action, tuple[float, Right]] = {}
        self._held: dict[Selected, _Held] = {}
        self._starting: dict[Selected, asyncio.Lock] = {}

    async def close(self) -> None:
        """End all watches, and close all connections."""
        self.ended.set()
        for held in self._held.values():
            held.task.cancel()
        await asyncio.gather(*(held.task for held in self._held.values()), return_exceptions=True)
        self._held.clear()
        await self.client.close()

    # --- rights

    async def may(self, action: Action) -> Right:
        """Whether the person may do this, as the API server says."""
        known = self._rights.get(action)
        if known is not None and time.monotonic() - known[0] < RIGHT_LIFETIME:
            return known[1]
        question = {"spec": {"resourceAttributes": action.attributes}}
        answer = await self.client.create(
            ACCESS_REVIEWS,
            {
                "apiVersion": ACCESS_REVIEWS.api_version,
                "kind": ACCESS_REVIEWS.kind,
                "metadata": {},
                **question,
            },
        )
        status = answer.get("status") or {}
        right = Right(bool(status.get("allowed")))
        if not right.allowed:
            why = f" ({status['reason']})" if status.get("reason") else ""
            right = Right(False, f"{self.user} may not {action.text}{why}")
        self._rights[action] = (time.monotonic(), right)
        if len(self._rights) > 1000:
            self._rights.clear()
        return right

    # --- reading

    async def find(self, resource: Resource[Any], name: str, namespace: str = "") -> Any:
        """The object; None if it or its kind does not exist, or may not be read."""
        try:
            return await self.client.get(resource, name, namespace)
        except NotFound:
            return None
        except ApiError as error:
            if error.code == 403:
                return None
            raise

    async def objects(self, selected: Selected) -> Cache[Any]:
        """The cache of these objects, filled and current.

        `Unreadable` if the person may not list them, now: a right can be taken away while the
        cache runs. `Unanswered` if the cache lost its watch.
        """
        right = await self._may_list(selected)
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
            async with asyncio.timeout(FIRST_LIST_TIMEOUT):
                await held.cache.wait_answered()
        except TimeoutError:
            why = held.cache.trouble or "the API server does not answer"
            raise Unanswered(f"{selected.resource.plural} cannot be read: {why}") from None
        if held.cache.lost_for > WATCH_GRACE_PERIOD:
            why = held.cache.trouble or "the API server does not answer"
            raise Unanswered(f"{selected.resource.plural} are not followed any more: {why}")
        return held.cache

    async def _may_list(self, selected: Selected) -> Right:
        """Whether the person may list these; a short outage does not change the last answer."""
        action = Action(verb="list", resource=selected.resource, namespace=selected.namespace)
        known = self._rights.get(action)
        try:
            async with asyncio.timeout(RIGHT_TIMEOUT):
                return await self.may(action)
        except Unauthorized:
            raise
        except (KubeError, TimeoutError) as error:
            if known is not None and time.monotonic() - known[0] < WATCH_GRACE_PERIOD:
                return known[1]
            why = str(error) or "the API server does not answer"
            raise Unanswered(f"{selected.resource.plural} cannot be read: {why}") from None

    def _drop(self, selected: Selected) -> None:
        """Stop a cache and forget its objects."""
        held = self._held.pop(selected, None)
        if held is not None:
            held.task.cancel()

    async def _start(self, selected: Selected) -> _Held:
        resource = selected.resource
        right = await self.may(
            Action(verb="watch", resource=resource, namespace=selected.namespace)
        )
        if not right.allowed:
            raise Unreadable(right.reason)
        cache: Cache[Any] = Cache(
            self.client,
            resource,
            namespace=selected.namespace,
            name=selected.name,
            field_selector=selected.field_selector,
            keep_all_managed_fields=resource.plural == "clusteroperators",
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
            now = format_time(self.client.now())
            found.extendleft(condition_changes(change.old, change.new, now))

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
            if not held.users and now - held.used > LINGER:
                self._drop(selected)

    def watches(self) -> int:
        """How many watches run."""
        return len(self._held)


def condition_changes(before: Object | None, after: Object, at: str) -> list[ConditionChange]:
    """The conditions whose status differs. Pure."""
    if before is None:
        return []
    old, new = _statuses(before), _statuses(after)
    return [
        ConditionChange(type=type_, before=old.get(type_, "absent"), after=new[type_], at=at)
        for type_ in new
        if old.get(type_) != new[type_]
    ]


def _statuses(obj: Object) -> dict[str, str]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return {str(one.get("type")): str(one.get("status")) for one in found}


async def who_is(client: Client) -> str:
    """The name of the user whose credentials the client has; raises `Unauthorized` and others."""
    answer = await client.create(
        IDENTITY_REVIEWS,
        {"apiVersion": IDENTITY_REVIEWS.api_version, "kind": IDENTITY_REVIEWS.kind, "metadata": {}},
    )
    user: str = ((answer.get("status") or {}).get("userInfo") or {}).get("username") or "unknown"
    return user
