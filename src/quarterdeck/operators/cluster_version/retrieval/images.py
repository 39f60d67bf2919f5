"""Fetches the release images that the controller wants, again and again until they are there.

What is no longer wanted is cancelled. Files that an administrator may correct meanwhile (the pull
secret, the key, the CA bundle) are read anew for each try.
"""

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec

from quarterdeck.backoff import Backoff, Retries
from quarterdeck.controller.tasks import guarded
from quarterdeck.log import get_logger
from quarterdeck.oci.errors import OciError
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.registry.client import Registry
from quarterdeck.registry.credentials import PullSecretError, read_pull_secret
from quarterdeck.registry.errors import RegistryBusy, RegistryError, RegistryUnreachable
from quarterdeck.registry.mirrors import parse_mirrors
from quarterdeck.registry.reference import Reference, parse_reference
from quarterdeck.registry.release_image import (
    Fetched,
    StorageFailed,
    VerificationKey,
    fetch_release,
    verification_key,
)
from quarterdeck.registry.release_store import ReleaseStore
from quarterdeck.web import Web, WebError

log = get_logger("operators.cluster-version.retrieval")

RETRY = Backoff(base=3.0, limit=300.0)
BUSY_WAIT = 5.0
"""Seconds that one request waits for a busy registry, before a condition tells of it."""
MAX_BUSY = 600.0
"""The most seconds until a busy registry is asked again, whatever it asks for."""
MAX_KEY = 64 << 10


class WantedImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image to fetch."""

    image: str
    force: bool = False
    """Whether it is fetched although it cannot be verified."""


class NotFetched(msgspec.Struct, frozen=True, kw_only=True):
    """Why an image is not there yet, and what to do."""

    reason: str
    message: str
    remedy: str


class ImageRetriever:
    """Fetches images in a task, and has the news about each."""

    def __init__(self, settings: Settings, fetched: Callable[[], None]) -> None:
        self._settings = settings
        self._on_fetched = fetched
        self.wake: Callable[[], None] = lambda: None
        self.failures: dict[str, NotFetched] = {}
        """By image: why the last try failed; nothing while the first try is under way."""
        self.resolved: dict[str, str] = {}
        """By image with a tag: the digest that it had when it was first asked for."""
        self._wanted: tuple[WantedImage, ...] = ()
        self._needed: Collection[str] = ()
        self._changed = asyncio.Event()
        self._tasks: dict[WantedImage, asyncio.Task[None]] = {}
        self._fetched: dict[WantedImage, tuple[float, Retries]] = {}
        """When each was last fetched, with the back-off if it is wanted again all the same."""

    def key_identifier(self) -> str:
        """The identifier of the verification key; empty if there is none.

        A key that cannot be read verifies nothing, and no release passes for verified.
        """
        if not self._settings.verification_key_file:
            return ""
        try:
            return self._key_now().identifier
        except (OSError, OciError):
            return "unreadable"

    def want(
        self, wanted: tuple[WantedImage, ...], requested: str, needed: Collection[str]
    ) -> None:
        """Fetch these images and no others.

        `requested` is the image of the requested release, whose digest stays resolved; releases
        with the `needed` digests are never removed.
        """
        self._needed = needed
        for image in [one for one in self.resolved if one != requested]:
            del self.resolved[image]
        names = {one.image for one in wanted}
        for image in [one for one in self.failures if one not in names]:
            del self.failures[image]
        done = any(task.done() for task in self._tasks.values())
        if wanted != self._wanted or (wanted and done):
            self._wanted = wanted
            self._changed.set()

    async def run(self) -> None:
        """Fetch what is wanted, until cancelled."""
        if (root := self._settings.fetched_directory) is not None:
            await asyncio.to_thread(ReleaseStore(root).clean)
        try:
            while True:
                self._changed.clear()
                for one in [one for one in self._tasks if one not in self._wanted]:
                    self._tasks.pop(one).cancel()
                for one in self._wanted:
                    if one not in self._tasks or self._tasks[one].done():
                        work = guarded("fetch", self._until_fetched(one))
                        self._tasks[one] = asyncio.create_task(work, name=f"fetch {one.image}")
                await self._changed.wait()
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _until_fetched(self, wanted: WantedImage) -> None:
        await asyncio.sleep(self._pause(wanted))
        retries = Retries(RETRY)
        while True:
            asked = 0.0
            try:
                found = await self._fetch(wanted)
            except (RegistryError, PullSecretError, OciError, WebError, ValueError) as error:
                log.info("release not fetched", image=wanted.image, why=str(error))
                self.failures[wanted.image] = _failure(error)
                if isinstance(error, RegistryBusy):
                    asked = min(error.again_in, MAX_BUSY)
            except Exception as error:  # one of ours; the next try may do
                log.exception("release not fetched", image=wanted.image)
                self.failures[wanted.image] = NotFetched(
                    reason="InternalError",
                    message=f"the operator itself failed: {type(error).__name__}: {error}",
                    remedy="look at its log; it tries again",
                )
            else:
                break
            self.wake()
            await asyncio.sleep(max(retries.next(), asked))
        log.info("release fetched", image=wanted.image, digest=found.digest)
        self.failures.pop(wanted.image, None)
        _, again = self._fetched.get(wanted, (0.0, Retries(RETRY)))
        self._fetched[wanted] = (asyncio.get_running_loop().time(), again)
        self._on_fetched()
        self.wake()

    def _pause(self, wanted: WantedImage) -> float:
        """The seconds before a fetch: none, unless one of late was of no use."""
        now = asyncio.get_running_loop().time()
        old = [one for one, (then, _) in self._fetched.items() if now - then > 2 * RETRY.limit]
        for one in old:
            del self._fetched[one]
        return self._fetched[wanted][1].next() if wanted in self._fetched else 0.0

    async def _fetch(self, wanted: WantedImage) -> Fetched:
        settings = self._settings
        image = parse_reference(wanted.image)
        key = await asyncio.to_thread(self._key_now) if settings.verification_key_file else None
        credentials = await asyncio.to_thread(read_pull_secret, settings.pull_secret_file)
        mirrors = parse_mirrors(await asyncio.to_thread(lambda: settings.mirrors))
        root = settings.fetched_directory
        if root is None:
            raise StorageFailed(
                "there is no directory for releases that are fetched",
                "name one with --fetched-releases",
            )
        store = ReleaseStore(root)
        limit = settings.retrieval_timeout.total_seconds()
        try:
            async with asyncio.timeout(limit), Web(ca_file=settings.registry_ca_file) as web:
                registry = Registry(
                    web,
                    credentials=credentials,
                    mirrors=mirrors,
                    max_wait=BUSY_WAIT,
                    blob_limit=limit,
                )
                image = await self._resolved(registry, wanted.image, image)
                found = await fetch_release(registry, image, store, key, force=wanted.force)
        except TimeoutError as error:
            raise RegistryUnreachable(
                f"{image}: not fetched within {limit:.0f} seconds",
                "check the registry and the way to it, or set --retrieval-timeout",
            ) from error
        await asyncio.to_thread(store.prune, {*self._needed, found.digest})
        return found

    async def _resolved(self, registry: Registry, text: str, image: Reference) -> Reference:
        """The image by its digest; a tag is resolved once."""
        if image.digest:
            return image
        if text not in self.resolved:
            self.resolved[text] = (await registry.manifest(image)).digest
            log.info("tag resolved", image=text, digest=self.resolved[text])
        return image.at(self.resolved[text])

    def _key_now(self) -> VerificationKey:
        path = Path(self._settings.verification_key_file)
        try:
            with path.open("rb") as file:
                return verification_key(file.read(MAX_KEY))
        except OSError as error:
            raise OciError(
                f"--verification-key {path} cannot be read: {error.strerror}; mount it, or correct"
                " the option"
            ) from error


def _failure(error: Exception) -> NotFetched:
    if isinstance(error, RegistryError | WebError):
        reason = error.reason if isinstance(error, RegistryError) else "RegistryUnreachable"
        return NotFetched(reason=reason, message=error.message, remedy=error.remedy)
    # These say in one sentence what is wrong, and in the next what to do.
    message, _, remedy = str(error).rpartition("; ")
    if isinstance(error, PullSecretError):
        return NotFetched(reason="PullSecretInvalid", message=message, remedy=remedy)
    return NotFetched(reason="InvalidSettings", message=message, remedy=remedy)
