"""Brings a cache up to what the storage holds, for who decides from it as a new leader.

A watch that has fallen silent looks like one on which nothing happens. So a cache that was filled
earlier is compared with the version of a list of one object, which the server reads from its
storage. Versions are those of the same resource type, the only ones that can be compared.
"""

import asyncio
import time
from contextlib import suppress
from typing import Any

from quarterdeck.kube.backoff import Backoff, Retries
from quarterdeck.kube.cache import Cache
from quarterdeck.kube.client import PAGE
from quarterdeck.kube.errors import KubeError, NotFound
from quarterdeck.log import get_logger

log = get_logger("kube.cache")

CATCH_UP = 1.0
"""Seconds that a cache of many objects may take to reach a version before it is listed again.

Where much changes the next event is there at once. A version that nothing in the cache belongs to
is never reached: it counts the changes of all resource types. A cache of few objects is listed
without waiting, which costs no more than to ask.
"""
ANSWER_LIMIT = 5.0
"""Seconds that the list of one object may take."""
FEW = PAGE


async def bring_up_to(cache: Cache[Any], since: float) -> None:
    """Return when the cache holds what the storage held at that time of `time.monotonic`, or later.

    Whatever fails is tried again, until it is cancelled. A resource type that the server does not
    have is nothing to wait for.
    """
    retries = Retries(Backoff(base=1.0, limit=30.0, jitter=0.5))
    while cache.recent_at < since:
        asked, known, version = time.monotonic(), cache.version, 0
        try:
            async with asyncio.timeout(ANSWER_LIMIT):
                version = await cache.storage_version()
        except NotFound:
            if cache.missing:
                return
        except (KubeError, TimeoutError) as error:
            said = str(error) or "no answer in time"
            log.v(2).info("version not to be had", resource=cache.resource.plural, error=said)
        # A storage that is behind what was known before has lost some of its history.
        if version >= known and version and await _reaches(cache, version):
            cache.prove(asked)
            return
        log.v(2).info("cache is listed again to be recent", resource=cache.resource.plural)
        cache.list_again(since, version, asked)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(ANSWER_LIMIT, retries.next())):
                await cache.wait_recent(since)


async def _reaches(cache: Cache[Any], version: int) -> bool:
    """Whether the watch has told everything up to a version, or does so soon."""
    deadline = time.monotonic() + (CATCH_UP if len(cache) > FEW else 0.0)
    # Asked for now and then: to be told of it would cost something at each event.
    while cache.version < version and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return cache.version >= version
