"""One cache per resource and selector, shared by every controller of the process."""

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeVar, cast

from quarterdeck.api.meta import Object, Resource, TypedObject
from quarterdeck.kube import Cache, Client
from quarterdeck.kube.collector import settle_collector
from quarterdeck.kube.store import Index

T = TypeVar("T", bound=TypedObject | Object)


class CacheKey(NamedTuple):
    """What makes two wishes for a cache the same one."""

    api_version: str
    plural: str
    namespace: str
    name: str
    label_selector: str
    field_selector: str
    all_managed_fields: bool

    def __str__(self) -> str:
        """The resource with what narrows it, as a person would say it."""
        group = self.api_version.rpartition("/")[0]
        where = [f"{self.plural}.{group}" if group else self.plural]
        where += [f"in {self.namespace}"] if self.namespace else []
        where += [f"named {self.name}"] if self.name else []
        selectors = ",".join(filter(None, (self.label_selector, self.field_selector)))
        where += [f"with {selectors}"] if selectors else []
        return " ".join(where)


class Caches:
    """The caches that the operators of one process have asked for."""

    def __init__(self, client: Client, field_managers: Iterable[str]) -> None:
        self._client = client
        self._managers = tuple(field_managers)
        self._caches: dict[CacheKey, Cache[Any]] = {}

    def get(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        name: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, Index[T]] | None = None,
        all_managed_fields: bool = False,
    ) -> tuple[CacheKey, Cache[T]]:
        """The cache for these objects, the same one for everybody who asks for the same."""
        key = CacheKey(
            resource.api_version,
            resource.plural,
            namespace if resource.namespaced else "",
            name,
            label_selector,
            field_selector,
            all_managed_fields,
        )
        cache = self._caches.get(key)
        if cache is None:
            cache = self._caches[key] = Cache(
                self._client,
                resource,
                namespace=key.namespace,
                name=name,
                label_selector=label_selector,
                field_selector=field_selector,
                own_manager=self._managers,
                keep_all_managed_fields=all_managed_fields,
            )
        cache.add_indexes(indexes or {})
        return key, cast("Cache[T]", cache)

    @contextmanager
    def hearing_writes(self, clients: Iterable[Client]) -> Iterator[None]:
        """While this lasts, the answers to the writes of these clients reach the caches."""
        with ExitStack() as stack:
            for client in clients:
                for cache in self._caches.values():
                    stack.enter_context(client.listening(cache.resource, cache))
            yield

    async def run(self, wanted: Collection[CacheKey]) -> None:
        """Keep these caches up to date until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for key in wanted:
                cache = self._caches[key]
                tasks.create_task(cache.run(), name=f"cache of {key}")
                tasks.create_task(_settle_after(cache), name=f"first list of {key}")


async def _settle_after(cache: Cache[Any]) -> None:
    await cache.wait_synced()
    settle_collector()
