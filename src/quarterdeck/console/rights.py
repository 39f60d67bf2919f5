"""What one identity may do, as the API server says."""

import asyncio
import math
import time
from typing import Any

import msgspec

from quarterdeck.api.meta import Object, Resource, foreign
from quarterdeck.kube import Client

ACCESS_REVIEWS = foreign(
    "authorization.k8s.io/v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
    namespaced=False,
)
RIGHT_LIFETIME = 15.0
"""Seconds for which an answer about a right is reused."""
RIGHT_FRESH = 5.0
"""Seconds after which it is asked again while a page is made from the old one: no page waits."""


class Permission(msgspec.Struct, frozen=True):
    """Whether something is allowed, and if not, why."""

    allowed: bool
    reason: str = ""


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


class Rights:
    """Asks the API server what a person may do, and reuses the answers for a while."""

    def __init__(self, client: Client, user: str) -> None:
        self._client = client
        self._user = user
        self._known: dict[Action, tuple[float, Permission]] = {}
        self._asking: dict[Action, asyncio.Task[Permission]] = {}

    def close(self) -> None:
        """End the questions that nobody waits for."""
        for task in self._asking.values():
            task.cancel()

    def last(self, action: Action) -> tuple[float, Permission] | None:
        """The last answer, and how many seconds old it is."""
        known = self._known.get(action)
        return (time.monotonic() - known[0], known[1]) if known is not None else None

    async def may(self, action: Action) -> Permission:
        """Whether the person may do this, as the API server says."""
        known = self._known.get(action)
        age = time.monotonic() - known[0] if known is not None else math.inf
        if known is None or age >= RIGHT_LIFETIME:
            return await self._ask(action)
        if age >= min(RIGHT_FRESH, RIGHT_LIFETIME) and action not in self._asking:
            task = asyncio.create_task(self._ask(action), name="console right")
            self._asking[action] = task
            task.add_done_callback(lambda done: self._asked(action, done))
        return known[1]

    def _asked(self, action: Action, done: "asyncio.Task[Permission]") -> None:
        """The right was asked about for later pages; if that failed, the next page asks itself."""
        self._asking.pop(action, None)
        if not done.cancelled():
            done.exception()

    async def _ask(self, action: Action) -> Permission:
        question = {"spec": {"resourceAttributes": action.attributes}}
        answer = await self._client.create(
            ACCESS_REVIEWS,
            {
                "apiVersion": ACCESS_REVIEWS.api_version,
                "kind": ACCESS_REVIEWS.kind,
                "metadata": {},
                **question,
            },
        )
        status = answer.get("status") or {}
        right = Permission(bool(status.get("allowed")))
        if not right.allowed:
            why = f" ({status['reason']})" if status.get("reason") else ""
            right = Permission(False, f"{self._user} may not {action.text}{why}")
        self._known[action] = (time.monotonic(), right)
        if len(self._known) > 1000:
            self._known.clear()
        return right
