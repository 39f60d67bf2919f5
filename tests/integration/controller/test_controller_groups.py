"""Caches and controllers that begin and end while the operator runs. On a real API server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.integration.controller.processes import LIMIT, make_process, operator, running, when
from tests.objects import config_map, secret

from quarterdeck.api.meta import CONFIG_MAPS, CRDS, SECRETS, Key, Object, foreign
from quarterdeck.controller import (
    DONE,
    Controller,
    Group,
    Manager,
    Objects,
    Result,
    Watch,
    to_singleton,
)
from quarterdeck.controller.cache_tasks import running_caches
from quarterdeck.kube import Cache, Client, NotFound, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.audit import requests_by
from quarterdeck.testing.waiting import eventually_async

SWITCH = "switch"


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        yield client


class Switched:
    """An operator with a ConfigMap as its switch, and Secrets that it looks at while it is on."""

    def __init__(self, namespace: str) -> None:
        self._switch = Key(namespace, SWITCH)
        self.seen: dict[str, Any] = {}
        self.runs = 0
        self.group: Group
        self.secrets: Objects[Object]

    def setup(self, manager: Manager) -> None:
        """The switch, and what it switches."""
        self.setup_by_hand(manager)
        switches = manager.objects(CONFIG_MAPS)

        async def reconcile_switch(key: Key) -> Result:
            switch = switches.get(key)
            if switch is not None and switch["data"]["on"] == "yes":
                self.group.start()
            else:
                self.group.stop()
            return DONE

        to_switch = to_singleton(self._switch)
        manager.add(Controller("switch", reconcile_switch, [Watch(switches, to_switch)]))

    def setup_by_hand(self, manager: Manager) -> None:
        """Only what is switched, by the test itself: no reconcile undoes what it has just done."""
        group = self.group = manager.group("secrets")
        secrets = self.secrets = group.objects(SECRETS, writes=["patch"])

        async def reconcile(key: Key) -> Result:
            self.runs += 1
            found = secrets.get(key)
            self.seen[key.name] = found and found["data"]["a"]
            return DONE

        group.add(Controller("secret", reconcile, [Watch(secrets)]))


async def turn(client: Client, namespace: str, on: str) -> None:
    try:
        await client.patch(CONFIG_MAPS, SWITCH, {"data": {"on": on}}, namespace)
    except NotFound:
        await client.create(CONFIG_MAPS, config_map(namespace, SWITCH, on=on))


async def values(client: Client, namespace: str) -> dict[str, str]:
    found = (await client.list(SECRETS, namespace)).items
    return {obj["metadata"]["name"]: obj["data"]["a"] for obj in found}


async def test_who_is_switched_off_watches_only_the_switch(
    control_plane: ControlPlane, namespace: str, client: Client
) -> None:
    user = f"switched-{namespace}"
    kubeconfig = control_plane.kubeconfig_for(user, ["system:masters"])

    def asked(resource: str) -> list[str]:
        found = requests_by(control_plane.audit_log, user)
        return [it.verb for it in found if it.resource == resource]

    switched = Switched(namespace)
    process = make_process(kubeconfig, [operator("switched", switched.setup)], namespace)
    await client.create(SECRETS, secret(namespace, "x", a="1"))
    await turn(client, namespace, "no")
    async with running(process) as task:
        await when(lambda: process.readiness() == {"switched": ""}, task)
        await client.create(SECRETS, secret(namespace, "y", a="1"))
        assert not switched.group.started
        assert (asked("secrets"), len(switched.secrets.all())) == ([], 0)
        await turn(client, namespace, "yes")
        await when(lambda: {"x", "y"} <= set(switched.seen), task)
        await turn(client, namespace, "no")
        await when(lambda: not switched.group.started and not switched.secrets.all(), task)
        # The watch has ended: the server writes it into its log then.
        await when(lambda: "watch" in asked("secrets"), task)
        runs = switched.runs
        await client.delete(SECRETS, "x", namespace)
        await turn(client, namespace, "yes")
        await when(lambda: switched.runs > runs, task)
        assert switched.secrets.get(Key(namespace, "x")) is None


async def test_a_watch_that_begins_while_events_flow_loses_none(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    """Objects are made, changed and deleted all the time; in the end each was seen as it is."""
    switched = Switched(namespace)
    process = make_process(kubeconfig, [operator("switched", switched.setup)], namespace)
    turns = 0

    async def churn() -> None:
        nonlocal turns
        while True:
            turns += 1
            name = f"s{turns}"
            await client.create(SECRETS, secret(namespace, name, a="new"))
            changed = {"stringData": {"a": f"changed {turns}"}}
            await client.patch(SECRETS, name, changed, namespace)
            if turns % 3 == 0:
                await client.delete(SECRETS, f"s{turns - 1}", namespace)

    async with running(process) as task:
        await turn(client, namespace, "no")
        churning = asyncio.create_task(churn())
        for _ in range(8):
            for on in ("yes", "no"):
                before = turns
                await turn(client, namespace, on)
                await when(lambda: turns > before + 2, task)  # noqa: B023 - called right here
        await turn(client, namespace, "yes")
        await when(lambda: switched.group.started, task)
        before = turns
        await when(lambda: turns > before + 20, task)
        churning.cancel()
        await asyncio.gather(churning, return_exceptions=True)
        wanted = await values(client, namespace)

        def is_known() -> bool:
            """What is there was seen as it is, and what is gone is not held for alive."""
            held = {obj["metadata"]["name"] for obj in switched.secrets.all()}
            return held == set(wanted) and wanted.items() <= switched.seen.items()

        await when(is_known, task)


async def test_a_kind_that_comes_later_is_waited_for_by_its_group_alone(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    group_name = f"{namespace}.example.test"
    things = foreign(f"{group_name}/v1", "Thing", "things", namespaced=True)
    seen: list[Key] = []
    seen_maps: list[Key] = []

    def setup(manager: Manager) -> None:
        async def reconcile(key: Key) -> Result:
            seen.append(key)
            return DONE

        async def reconcile_map(key: Key) -> Result:
            seen_maps.append(key)
            return DONE

        group = manager.group("things")
        group.add(Controller("thing", reconcile, [Watch(group.cache(things))]))
        maps = manager.cache(CONFIG_MAPS)
        manager.add(Controller("map", reconcile_map, [Watch(maps)]))
        group.start()

    definition = {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"things.{group_name}"},
        "spec": {
            "group": group_name,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object"}},
                }
            ],
        },
    }
    process = make_process(kubeconfig, [operator("things", setup)], namespace)
    try:
        async with running(process) as task:
            await client.create(CONFIG_MAPS, config_map(namespace, "x"))
            await when(lambda: Key(namespace, "x") in seen_maps, task)
            await when(lambda: "waiting for things" in process.readiness()["things"], task)
            await client.create(CRDS, definition)
            thing = {"metadata": {"namespace": namespace, "name": "x"}}
            async with asyncio.timeout(LIMIT):
                while True:
                    try:
                        kind = {"apiVersion": things.api_version, "kind": things.kind}
                        await client.create(things, {**kind, **thing})
                    except NotFound:
                        await asyncio.sleep(0.05)
                    else:
                        break
            await when(lambda: seen == [Key(namespace, "x")], task)
            assert process.readiness() == {"things": ""}
    finally:
        await client.delete(CRDS, f"things.{group_name}")


async def test_a_crash_in_a_group_ends_the_process(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    def setup(manager: Manager) -> None:
        async def reconcile(key: Key) -> Result:
            lost: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
            lost.cancel()
            return await lost

        group = manager.group("crashing")
        group.add(Controller("crashing", reconcile, [Watch(group.cache(CONFIG_MAPS))]))
        group.start()

    await client.create(CONFIG_MAPS, config_map(namespace, "x"))
    process = make_process(kubeconfig, [operator("crashing", setup)], namespace)
    async with asyncio.timeout(LIMIT):
        with pytest.raises(Exception, match="controller crashing: CancelledError"):
            await process.run()


async def test_a_group_that_starts_and_stops_many_times_leaves_nothing_behind(
    kubeconfig: Path, namespace: str, client: Client
) -> None:
    """After the last stop there are as many tasks, sockets and others as after the first."""
    switched = Switched(namespace)
    process = make_process(kubeconfig, [operator("switched", switched.setup_by_hand)], namespace)
    await client.create(SECRETS, secret(namespace, "x", a="1"))

    def counted() -> tuple[int, ...]:
        return (
            len(asyncio.all_tasks()),
            sum(it.startswith("socket:") for it in links()),
            len(switched.secrets.cache._store._subscribers),
            len(switched.group._running),
            len(process._metrics.controllers._controllers),
        )

    def links() -> list[str]:
        found: list[str] = []
        for it in Path("/proc/self/fd").iterdir():
            with suppress(FileNotFoundError):  # that of this very look
                found.append(str(it.readlink()))
        return found

    async def turn_on_and_off(task: "asyncio.Task[None]", number: int) -> None:
        # Sometimes all the way, and sometimes told otherwise in the middle of it.
        switched.group.start()
        if number % 3 == 0:
            await when(lambda: switched.group.started, task)
        else:
            for _ in range(number):
                await asyncio.sleep(0)
        switched.group.stop()
        for _ in range(number % 7):
            await asyncio.sleep(0)

    def is_quiet() -> bool:
        cache = switched.secrets.cache
        return not switched.group.started and not cache.list() and not cache.synced

    async with running(process) as task:
        await when(lambda: process.readiness() == {"switched": ""}, task)
        await turn_on_and_off(task, 0)
        await when(is_quiet, task)
        before = counted()
        for number in range(60):
            await turn_on_and_off(task, number)
        await when(is_quiet, task)
        await when(lambda: counted() <= before, task)
        # And it still works.
        seen = switched.runs
        switched.group.start()
        await when(lambda: switched.runs > seen, task)


def definition_of(group_name: str, scope: str, version: str = "v1") -> Object:
    schema = {"openAPIV3Schema": {"type": "object"}}
    served = {"name": version, "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"things.{group_name}"},
        "spec": {
            "group": group_name,
            "scope": scope,
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "versions": [served],
        },
    }


@pytest.mark.parametrize(
    ("scope", "version"), [("Cluster", "v1"), ("Namespaced", "v2")], ids=["scope", "version"]
)
async def test_a_kind_that_comes_again_as_another_one_leaves_no_objects_behind(
    namespace: str, client: Client, scope: str, version: str
) -> None:
    """The cache did not see its objects go: what the server has under that name is another kind."""
    group_name = f"{namespace}.example.test"
    things = foreign(f"{group_name}/v1", "Thing", "things", namespaced=True)
    kind = {"apiVersion": things.api_version, "kind": things.kind}
    name = f"things.{group_name}"

    async def established() -> None:
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    conditions = (await client.get(CRDS, name)).get("status", {}).get("conditions")
                except NotFound:
                    conditions = None
                if any(
                    it["type"] == "Established" and it["status"] == "True"
                    for it in conditions or ()
                ):
                    return
                await asyncio.sleep(0.05)

    async def gone() -> None:
        await client.delete(CRDS, name)
        async with asyncio.timeout(LIMIT):
            while True:
                try:
                    await client.get(CRDS, name)
                except NotFound:
                    return
                await asyncio.sleep(0.05)

    cache = Cache(client, things, namespace=namespace)
    await client.create(CRDS, definition_of(group_name, "Namespaced"))
    try:
        await established()
        async with asyncio.timeout(LIMIT):
            while True:  # it is established a little before it is served
                try:
                    thing = {"metadata": {"namespace": namespace, "name": "x"}}
                    await client.create(things, {**kind, **thing})
                except NotFound:
                    await asyncio.sleep(0.05)
                else:
                    break
        async with running_caches(cache):
            assert len(cache) == 1
        await gone()
        await client.create(CRDS, definition_of(group_name, scope, version))
        await established()
        running_cache = asyncio.create_task(cache.run())
        try:
            await eventually_async(lambda: not len(cache) and cache.missing, "no kind", 20)
        finally:
            running_cache.cancel()
            await asyncio.gather(running_cache, return_exceptions=True)
    finally:
        await client.delete(CRDS, name)
