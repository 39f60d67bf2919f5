"""Makes sure that a cache is recent, for a new leader that decides from it.

A watch that has stopped sending looks like a watch without changes. So the version of a cache is
compared with that of a list of one object, which the server reads from its storage. Both versions
are of the same resource type, because only those can be compared.
"""

import asyncio
import time
from contextlib import suppress
from typing import Any

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.kube.cache import Cache
from quarterdeck.kube.client import PAGE_SIZE
from quarterdeck.kube.errors import KubeError, NotFound
from quarterdeck.log import get_logger

log = get_logger("kube.cache")

CATCH_UP_TIMEOUT = 1.0
"""Seconds that a cache of many objects has to reach a version before it is listed again.

If objects change often, the next event arrives at once. If not, the cache never reaches the
version, which counts the changes of all resource types. A cache of few objects is listed without
waiting, which costs no more than the list of one object.
"""
VERSION_TIMEOUT = 5.0
"""Seconds that the list of one object may take."""
FEW_OBJECTS = PAGE_SIZE


async def ensure_recent(cache: Cache[Any], since: float) -> None:
    """Return when the cache is as recent as the storage at this time of `time.monotonic`.

    Errors are retried until cancelled. It does not wait for a resource type that the server does
    not have.
    """
    retries = Retries(Backoff(base=1.0, limit=30.0, jitter=0.5))
    while cache.recent_at < since:
        asked, known, version = time.monotonic(), cache.version, 0
        try:
            async with asyncio.timeout(VERSION_TIMEOUT):
                version = await cache.storage_version()
        except NotFound:
            if cache.missing:
                return
        except (KubeError, TimeoutError) as error:
            why = str(error) or "no answer in time"
            log.v(2).info("storage version not read", resource=cache.resource.plural, error=why)
        # A storage behind a version known before was restored from a backup.
        if version >= known and version and await _reaches(cache, version):
            cache.set_recent(asked)
            return
        log.v(2).info("cache is listed again to be recent", resource=cache.resource.plural)
        cache.list_again(since, version, asked)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(VERSION_TIMEOUT, retries.next())):
                await cache.wait_recent(since)


async def _reaches(cache: Cache[Any], version: int) -> bool:
    """Whether the watch has sent everything up to a version, or does so soon."""
    deadline = time.monotonic() + (CATCH_UP_TIMEOUT if len(cache) > FEW_OBJECTS else 0.0)
    # Polled: a notification would cost time at each event.
    while cache.version < version and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    return cache.version >= version
