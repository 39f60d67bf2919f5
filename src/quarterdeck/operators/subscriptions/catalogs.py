"""The controller of CatalogSources: reads catalogs, and keeps those that can be used in memory."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from quarterdeck.api.conditions import Condition
from quarterdeck.api.meta import CONFIG_MAPS, Key
from quarterdeck.api.operators_v1alpha1 import (
    CatalogSource,
    CatalogSourceStatus,
)
from quarterdeck.controller import DONE, Controller, Manager, Objects, Result, Watch
from quarterdeck.controller.faults import readable
from quarterdeck.operators.subscriptions.announce import faults_changed, record
from quarterdeck.operators.subscriptions.catalog.files import (
    config_map_files,
    directory_files,
)
from quarterdeck.operators.subscriptions.catalog.load import load
from quarterdeck.operators.subscriptions.catalog.model import Catalog, LoadedCatalog
from quarterdeck.operators.subscriptions.settings import Settings
from quarterdeck.status import set_condition

SHOWN_FINDINGS = 5
TOO_LARGE = "TooLarge"
TOO_MANY = "TooManyCatalogs"
MAX_HOME = 128 << 20
"""The most bytes in memory of the catalogs of the operator's own namespace, reserved for them."""
MAX_OTHERS = 128 << 20
"""The most bytes of the catalogs of all other namespaces, where users create CatalogSources."""
MAX_NAMESPACE = 32 << 20
"""The most bytes of the catalogs of one of those namespaces."""

MAX_CONFIG_MAPS = 100
"""The most ConfigMaps with catalogs of a namespace: each watch is a connection, and all users share
them."""


class CatalogState(msgspec.Struct, frozen=True, kw_only=True):
    """A catalog that can be used, or why not."""

    fingerprint: str
    """Changes with the content."""
    catalog: Catalog | None = None
    reason: str = "Read"
    message: str = ""

    @property
    def size(self) -> int:
        """The bytes in memory of the catalog."""
        return self.catalog.size if self.catalog is not None else 0


class Catalogs:
    """Reads the catalogs of all CatalogSources."""

    def __init__(
        self,
        manager: Manager,
        settings: Settings,
        sources: Objects[CatalogSource],
        on_change: Callable[[], None],
    ) -> None:
        """Call `on_change` when the content of a catalog has changed."""
        self._manager = manager
        self._settings = settings
        self._sources = sources
        self._on_change = on_change
        self._states: dict[Key, CatalogState] = {}
        watches = [Watch(sources)]
        self._controller = Controller("catalog-source", self._reconcile, watches, workers=2)
        manager.add(self._controller)
        self._config_maps = manager.named(CONFIG_MAPS, self._controller)

    def get(self, key: Key) -> CatalogState | None:
        """The state of a catalog; None if it was not read yet, or there is none."""
        return self._states.get(key)

    async def _reconcile(self, key: Key) -> Result:
        source = self._sources.get(key)
        if source is None or source.metadata.deletion_timestamp is not None:
            self._config_maps.watch(key, [])
            self._keep(key, None)
            return DONE
        state = await self._state(key, source)
        if state is None:
            return DONE  # The ConfigMap is not read yet; that wakes the key.
        self._keep(key, state)
        status = desired_status(source, state, self._manager.now())
        if await self._sources.set_status(source, status):
            changes = faults_changed(_faults(source.status), _faults(status))
            record(self._manager.events, source, changes, "Read")
        if source.spec.source_type == "directory" or state.reason == TOO_MANY:
            return Result(requeue_after=self._settings.catalog_interval.total_seconds())
        return DONE

    def _keep(self, key: Key, state: CatalogState | None) -> None:
        """Keep the state of a catalog, or forget it, and tell who needs to know."""
        had = self._states.pop(key, None)
        if state is not None:
            self._states[key] = state
        if had == state:
            return
        self._on_change()
        if had is not None and had.size > (state.size if state is not None else 0):
            for other, waiting in self._states.items():
                if waiting.reason == TOO_LARGE:
                    self._controller.wake(other)

    async def _state(self, key: Key, source: CatalogSource) -> CatalogState | None:
        spec = source.spec
        match spec.source_type:
            case "configmap" | "internal":
                return await self._from_config_map(key, spec.config_map or "")
            case "directory":
                self._config_maps.watch(key, [])
                return await self._from_directory(key, spec.directory or "")
            case other:
                self._config_maps.watch(key, [])
                message = f"spec.sourceType: {other!r}: use `configmap` or `directory`"
                return unusable("UnsupportedSource", message)

    async def _from_config_map(self, key: Key, name: str) -> CatalogState | None:
        if not name:
            self._config_maps.watch(key, [])
            return unusable("InvalidSpec", "spec.configMap: name the ConfigMap with the catalog")
        where = Key(key.namespace, name)
        if why := too_many(where, self._config_maps.watched):
            self._config_maps.watch(key, [])
            return unusable(TOO_MANY, why)
        if self._config_maps.watch(key, [where]):
            return None
        found = self._config_maps.get(where)
        if found is None:
            return unusable("ConfigMapMissing", f"there is no ConfigMap {name}")
        meta = found["metadata"]
        fingerprint = f"{meta['uid']} {meta['resourceVersion']}"
        return await self._loaded(key, fingerprint, lambda: load(config_map_files(found)))

    async def _from_directory(self, key: Key, name: str) -> CatalogState:
        root = self._settings.catalog_root
        if not root:
            message = "spec.sourceType: 'directory': the operator runs without --catalog-root"
            return unusable("UnsupportedSource", message)
        path = directory_below(Path(root), name)
        if path is None:
            message = f"spec.directory: {name!r}: name a directory below the catalog root"
            return unusable("InvalidSpec", message)
        fingerprint = await asyncio.to_thread(fingerprint_of, path)
        return await self._loaded(key, fingerprint, lambda: load(directory_files(path)))

    async def _loaded(
        self, key: Key, fingerprint: str, read: Callable[[], LoadedCatalog]
    ) -> CatalogState:
        known = self._states.get(key)
        if known is not None and known.fingerprint == fingerprint and known.reason != TOO_LARGE:
            return known
        # In a thread: a large catalog takes seconds, and the operator goes on meanwhile.
        loaded = await asyncio.to_thread(read)
        if loaded.errors:
            shown = [str(finding) for finding in loaded.errors[:SHOWN_FINDINGS]]
            more = len(loaded.errors) - len(shown)
            text = "\n".join([*shown, *([f"and {more} more"] if more else [])])
            return CatalogState(fingerprint=fingerprint, reason="InvalidCatalog", message=text)
        others = {other: state.size for other, state in self._states.items() if other != key}
        message = too_large(key, loaded.catalog.size, others, self._manager.home.namespace)
        if message:
            return CatalogState(fingerprint=fingerprint, reason=TOO_LARGE, message=message)
        return CatalogState(fingerprint=fingerprint, catalog=loaded.catalog)


def too_many(config_map: Key, watched: Collection[Key]) -> str:
    """Why this ConfigMap cannot be watched beside the others; empty if it can."""
    same = [one for one in watched if one.namespace == config_map.namespace]
    if config_map in same or len(same) < MAX_CONFIG_MAPS:
        return ""
    return (
        f"the CatalogSources of the namespace {config_map.namespace} are in more than "
        f"{MAX_CONFIG_MAPS} ConfigMaps; delete one"
    )


def too_large(key: Key, size: int, others: Mapping[Key, int], home: str) -> str:
    """Why a catalog of that size has no place beside the others; empty if it has one."""
    same = size + sum(one for other, one in others.items() if other.namespace == key.namespace)
    foreign = size + sum(one for other, one in others.items() if other.namespace != home)
    limits = [(f"the catalogs of the namespace {key.namespace}", same, MAX_NAMESPACE)]
    if key.namespace == home:
        limits = [(f"the catalogs of the namespace {home}", same, MAX_HOME)]
    else:
        limits.append((f"all catalogs outside the namespace {home}", foreign, MAX_OTHERS))
    for which, total, limit in limits:
        if total > limit:
            return (
                f"with its {size >> 20} MiB {which} would have more than {limit >> 20} MiB in "
                "memory; make it smaller, or delete another one"
            )
    return ""


def unusable(reason: str, message: str) -> CatalogState:
    """The state of a catalog that cannot be read."""
    return CatalogState(fingerprint=f"{reason} {message}", reason=reason, message=message)


def directory_below(root: Path, name: str) -> Path | None:
    """The directory of that name below the root, links resolved; None if it is elsewhere."""
    path = (root / name).resolve()
    return path if name and path.is_relative_to(root.resolve()) else None


def fingerprint_of(directory: Path) -> str:
    """A text that changes when a file below the directory does."""
    found = []
    for parent, directories, names in os.walk(directory):
        directories.sort()
        for name in sorted(names):
            with suppress(FileNotFoundError):  # removed meanwhile
                stat = (Path(parent) / name).lstat()
                found.append(f"{parent}/{name} {stat.st_size} {stat.st_mtime_ns}")
    return "\n".join(found)


def _faults(status: CatalogSourceStatus) -> list[Condition]:
    return [one for one in status.conditions if one.status == "False"]


def desired_status(
    source: CatalogSource, state: CatalogState, now: datetime
) -> CatalogSourceStatus:
    """The status of the CatalogSource."""
    usable = state.catalog is not None
    ready = Condition(
        type="Ready",
        status="True" if usable else "False",
        reason=state.reason,
        message=readable(state.message),
        last_transition_time=now,
    )
    return CatalogSourceStatus(
        reason=None if usable else state.reason,
        message=None if usable else readable(state.message),
        packages=len(state.catalog.packages) if state.catalog else None,
        bundles=state.catalog.bundle_count if state.catalog else None,
        observed_generation=source.metadata.generation,
        conditions=set_condition(source.status.conditions, ready, now),
    )
