"""Reads the releases directory and its payloads in a thread, and keeps them while unchanged."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.payload.model import Payload, PayloadError
from quarterdeck.payload.releases import (
    Offer,
    Releases,
    fingerprint,
    load_release,
    read_fetched,
    read_releases,
    version_hash,
    with_own,
)
from quarterdeck.registry.release_store import ReleaseStore

REUSE_SECONDS = 2.0
"""Seconds for which a reading of the directory is reused."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A payload that can be applied."""

    payload: Payload
    hash: str


class Payloads:
    """The releases and payloads of a releases directory."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._releases: tuple[float, Releases] | None = None
        self._loaded: dict[str, tuple[float, str, Loaded | PayloadError]] = {}

    async def releases(self) -> Releases:
        """The releases in the directory now."""
        now = self._clock()
        if self._releases is None or now - self._releases[0] > REUSE_SECONDS:
            self._releases = (now, await asyncio.to_thread(self._read))
        return self._releases[1]

    def forget(self) -> None:
        """Read the directory anew at the next look: a release was fetched into it."""
        self._releases = None

    async def load(self, offer: Offer) -> Loaded | PayloadError:
        """The payload of a release, read again when its files have changed."""
        name, now = str(offer.directory), self._clock()
        known = self._loaded.get(name)
        if known is not None and now - known[0] <= REUSE_SECONDS:
            return known[2]
        mark = await asyncio.to_thread(fingerprint, offer)
        if known is None or known[1] != mark:
            found = await asyncio.to_thread(self._load, offer)
            if isinstance(found, PayloadError):
                self.forget()
        else:
            found = known[2]
        # Keep two: the release that runs, and the one that is asked for.
        others = [other for other in self._loaded if other != name]
        for other in others[:-1]:
            del self._loaded[other]
        self._loaded.pop(name, None)
        self._loaded[name] = (now, mark, found)
        return found

    def _read(self) -> Releases:
        settings, fetched = self._settings, self._settings.fetched_directory
        known = Releases(fetched=read_fetched(fetched) if fetched else ())
        if settings.releases:
            known = read_releases(Path(settings.releases), fetched)
        own = settings.own_directory
        return with_own(known, own, settings.release_image) if own else known

    def _load(self, offer: Offer) -> Loaded | PayloadError:
        try:
            payload = load_release(offer, self._settings.profile)
        except PayloadError as error:
            root = self._settings.fetched_directory
            if root is not None and offer.digest and offer.directory.parent == root:
                # It is fetched again.
                ReleaseStore(root).discard_damaged(offer.digest)
            return error
        return Loaded(payload=payload, hash=version_hash(payload))
