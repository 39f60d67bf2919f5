"""Reads the health of the cluster's operators from the API server.

For the command line and the console: `operators` reads once, `watch` at each change. `health`
decides the state of an operator.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from quarterdeck.api.meta import Object
from quarterdeck.controller.cache_tasks import running_caches
from quarterdeck.kube import Cache, Client, NotFound
from quarterdeck.status.health import OperatorHealth, health_of, worst_first
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS

NO_DEFINITION = (
    "the cluster does not know the resource type clusteroperators.config.openshift.io; "
    "its definition is in deploy/crds"
)


Keeps = Callable[[], Awaitable[bool | None]]
"""Finds out whether the staleness checker keeps an Upgradeable=False; None if unknown. Called only
if an operator's state depends on it."""


async def _unknown() -> None:
    return None


class CannotInspect(Exception):  # noqa: N818 - reads as what happened
    """The operators cannot be read; the message has the reason and the remedy."""


async def operators(
    client: Client, name: str | None = None, keeps: Keeps = _unknown
) -> list[OperatorHealth]:
    """All operators, the worst first, or only the one with this name."""
    judged = await _judged(await _list(client), keeps)
    if name is None:
        return judged
    chosen = [one for one in judged if one.name == name]
    if not chosen:
        known = ", ".join(sorted(one.name for one in judged)) or "none"
        raise CannotInspect(f"there is no ClusterOperator {name!r}; there are: {known}")
    return chosen


async def watch(
    client: Client,
    show: Callable[[list[OperatorHealth]], None],
    *,
    name: str | None = None,
    refresh: float | None = None,
    keeps: Keeps = _unknown,
) -> None:
    """Show the operators now, and again at each change or after `refresh` seconds, until cancelled.

    It waits for an operator that does not exist yet.
    """
    await _list(client)  # so that an error is raised now
    changed = asyncio.Event()
    cache: Cache[Object] = Cache(
        client, PLAIN_CLUSTER_OPERATORS, name=name or "", keep_all_managed_fields=True
    )
    cache.subscribe(lambda _: changed.set())
    async with running_caches(cache):
        shown = None
        while True:
            changed.clear()
            found = await _judged(cache.list(), keeps)
            if found != shown or refresh is not None:
                show(found)
                shown = found
            await _wait(changed, refresh)


async def _list(client: Client) -> list[Object]:
    try:
        return (await client.list(PLAIN_CLUSTER_OPERATORS)).items
    except NotFound:
        raise CannotInspect(NO_DEFINITION) from None


async def _judged(found: Iterable[Object], keeps: Keeps) -> list[OperatorHealth]:
    objects = list(found)
    judged = [health_of(one) for one in objects]
    if any(one.depends_on_keeping for one in judged):
        kept = await keeps()
        judged = [health_of(one, keep_upgradeable_false=kept) for one in objects]
    return worst_first(judged)


async def _wait(changed: asyncio.Event, limit: float | None) -> None:
    try:
        async with asyncio.timeout(limit):
            await changed.wait()
    except TimeoutError:
        return
