"""A new leader whose watch has fallen silent: it decides from what is, not from what was.

The second replica talks to the API server through a fault proxy, which stops one of its watches
while somebody else still leads. All that the replica holds looks well.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.integration.controller.processes import LIMIT, operator, running, when
from tests.objects import config_map

from quarterdeck.api.meta import CONFIG_MAPS, LEASES, SECRETS, Key, Object
from quarterdeck.controller import (
    DONE,
    Controller,
    Manager,
    Process,
    ProcessSettings,
    Result,
    Timing,
    Watch,
)
from quarterdeck.kube import Cache, Client, load_kubeconfig
from quarterdeck.testing.fault_proxy import Answer, FaultProxy, Stall

OTHERS = {"holderIdentity": "somebody", "leaseDurationSeconds": 3600}
QUICK = Timing(duration=6, deadline=4, retry=0.2)
LEADS_FIRST = Timing(duration=6, deadline=4, retry=3)
"""The first try to take the Lease has three seconds, so that it succeeds on a busy machine too."""


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        yield client


@pytest.fixture
def proxy(kubeconfig: Path) -> Iterator[FaultProxy]:
    with FaultProxy(kubeconfig) as proxy:
        yield proxy


class Deciding:
    """An operator that notes what it would decide from, in everything that only a leader does."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.seen: list[tuple[str, str]] = []
        self.caches: list[Cache[Object]] = []
        self.leads: Callable[[], bool] = lambda: False

    def setup(self, manager: Manager) -> None:
        cache = manager.cache(CONFIG_MAPS)
        self.caches.append(cache)
        self.leads = lambda: manager.leads
        group = manager.group("part")
        secrets = group.cache(SECRETS)

        def note(what: str) -> None:
            found = cache.get(self.key)
            self.seen.append((what, found["data"]["text"] if found else "nothing"))

        async def reconcile(key: Key) -> Result:
            if key == self.key:
                note("reconcile")
            return DONE

        async def reconcile_part(_key: Key) -> Result:
            found = secrets.get(self.key)
            self.seen.append(("part", found["data"]["text"] if found else "nothing"))
            return DONE

        async def task() -> None:
            note("task")
            await asyncio.Event().wait()

        manager.add(Controller("deciding", reconcile, [Watch(cache)]))
        group.add(Controller("part", reconcile_part, [Watch(secrets)]))
        manager.add_task("deciding", task)
        group.start()
        self.caches.append(secrets)

    def knows(self) -> bool:
        """Whether the caches are there and filled."""
        return len([cache for cache in self.caches if cache.get(self.key)]) == 2

    @property
    def done(self) -> set[str]:
        return {what for what, _ in self.seen}


def second_replica(
    proxy: FaultProxy, deciding: Deciding, namespace: str, election: Timing = QUICK
) -> Process:
    settings = ProcessSettings(
        identity="second",
        namespaces=(namespace,),
        election=election,
        probe_address="127.0.0.1:0",
        drain=10,
    )
    return Process([operator("deciding", deciding.setup, namespace)], proxy.connection(), settings)


async def hold_lease(client: Client, namespace: str) -> None:
    lease = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"namespace": namespace, "name": "deciding"},
        "spec": OTHERS,
    }
    await client.create(LEASES, lease)


async def free_lease(client: Client, namespace: str) -> None:
    await client.patch(LEASES, "deciding", {"spec": {"holderIdentity": ""}}, namespace)


def secret(namespace: str, name: str, text: str) -> Object:
    made = {**config_map(namespace, name), "kind": "Secret"}
    return {**made, "data": {"text": text}}


@asynccontextmanager
async def standing_by_with_silent_watches(
    client: Client, proxy: FaultProxy, namespace: str, *silent: str
) -> AsyncIterator[tuple[Deciding, "asyncio.Task[None]"]]:
    """A replica that stands by, and whose watches of these resources tell nothing any more."""
    deciding = Deciding(Key(namespace, "x"))
    await hold_lease(client, namespace)
    async with running(second_replica(proxy, deciding, namespace)) as task:
        await when(deciding.knows, task)
        for resource in silent:
            proxy.inject(Stall(), verb="watch", resource=resource, times=None)
        before = {it: proxy.count(verb="watch", resource=it) for it in silent}
        assert proxy.cut_now() >= len(silent)
        await when(
            lambda: all(proxy.count(verb="watch", resource=it) > before[it] for it in silent), task
        )
        proxy.clear()
        yield deciding, task


async def test_what_a_new_leader_decides_from_is_recent_although_its_watches_are_silent(
    client: Client, proxy: FaultProxy, namespace: str
) -> None:
    """Reconciles, timed tasks, and the controllers of a group that has been started before."""
    await client.create(CONFIG_MAPS, config_map(namespace, "x", text="old"))
    await client.create(SECRETS, secret(namespace, "x", "b2xk"))
    silent = ("configmaps", "secrets")
    async with standing_by_with_silent_watches(client, proxy, namespace, *silent) as (
        deciding,
        task,
    ):
        await client.patch(CONFIG_MAPS, "x", {"data": {"text": "new"}}, namespace)
        await client.patch(SECRETS, "x", {"data": {"text": "bmV3"}}, namespace)
        await free_lease(client, namespace)
        await when(lambda: deciding.done == {"reconcile", "task", "part"}, task)
        assert set(deciding.seen) == {("reconcile", "new"), ("task", "new"), ("part", "bmV3")}


async def test_a_new_leader_that_cannot_find_out_what_there_is_does_nothing_until_it_can(
    client: Client, proxy: FaultProxy, namespace: str
) -> None:
    """Neither the list of one object nor all of them are to be had; then they are."""
    await client.create(CONFIG_MAPS, config_map(namespace, "x", text="old"))
    await client.create(SECRETS, secret(namespace, "x", "b2xk"))
    async with standing_by_with_silent_watches(client, proxy, namespace, "configmaps") as (
        deciding,
        task,
    ):
        await client.patch(CONFIG_MAPS, "x", {"data": {"text": "new"}}, namespace)
        proxy.inject(Answer(500), verb="list", resource="configmaps", times=None)
        proxy.inject(Answer(500), verb="watch", resource="configmaps", times=None)
        before = proxy.count(verb="list", resource="configmaps")
        renewed = proxy.count(verb="update", resource="leases")
        await free_lease(client, namespace)
        await when(lambda: proxy.count(verb="list", resource="configmaps") > before + 2, task)
        await when(lambda: proxy.count(verb="update", resource="leases") > renewed + 5, task)
        assert deciding.seen == []
        assert not deciding.leads()
        proxy.clear()
        await when(lambda: deciding.done == {"reconcile", "task", "part"}, task)
        assert ("reconcile", "old") not in deciding.seen
        assert ("task", "new") in deciding.seen


async def test_who_leads_from_the_start_lists_once(
    client: Client, proxy: FaultProxy, namespace: str
) -> None:
    """The Lease is free, so it is taken before the caches are filled; they are filled once."""
    await client.create(CONFIG_MAPS, config_map(namespace, "x", text="old"))
    await client.create(SECRETS, secret(namespace, "x", "b2xk"))
    deciding = Deciding(Key(namespace, "x"))
    async with running(second_replica(proxy, deciding, namespace, LEADS_FIRST)) as task:
        await when(lambda: deciding.done == {"reconcile", "task", "part"}, task)
        asked = [(it.verb, it.resource) for it in proxy.seen]
        assert asked.index(("create", "leases")) < asked.index(("watch", "configmaps"))
        assert asked.count(("watch", "configmaps")) == asked.count(("watch", "secrets")) == 1
        assert proxy.count(verb="list") == 0


async def test_who_takes_over_asks_one_small_question_for_each_cache(
    client: Client, proxy: FaultProxy, namespace: str
) -> None:
    await client.create(CONFIG_MAPS, config_map(namespace, "x", text="old"))
    await client.create(SECRETS, secret(namespace, "x", "b2xk"))
    async with standing_by_with_silent_watches(client, proxy, namespace) as (deciding, task):
        await free_lease(client, namespace)
        await when(lambda: deciding.done == {"reconcile", "task", "part"}, task)
        assert proxy.count(verb="list", resource="configmaps") == 1
        assert proxy.count(verb="list", resource="secrets") == 1


async def test_a_leader_whose_caches_do_not_come_in_hands_the_lease_back(
    client: Client, proxy: FaultProxy, namespace: str
) -> None:
    """It took the Lease because it was free; somebody else may be able to work."""
    await client.create(SECRETS, secret(namespace, "x", "b2xk"))
    for verb in ("list", "watch"):
        proxy.inject(Answer(403), verb=verb, resource="configmaps", times=None)
    deciding = Deciding(Key(namespace, "x"))
    async with running(second_replica(proxy, deciding, namespace, LEADS_FIRST)) as task:
        async with asyncio.timeout(LIMIT):
            while True:
                lease = await client.list(LEASES, namespace)
                if [it["spec"]["holderIdentity"] for it in lease.items] == [""]:
                    break
                await asyncio.sleep(0.1)
        assert not task.done()
        await client.create(CONFIG_MAPS, config_map(namespace, "x", text="old"))
        proxy.clear()
        await when(lambda: deciding.done == {"reconcile", "task", "part"}, task)
