"""Writes that are about one object: prune, claim, finalizers. On a real API server."""

import asyncio
from typing import Any

import pytest
from tests.integration.controller.processes import LIMIT, make_process, operator, running, when
from tests.integration.controller.writer import Writer

from quarterdeck.api.meta import CONFIG_MAPS, DEPLOYMENTS, Key, Object
from quarterdeck.controller import (
    DONE,
    Controller,
    Finalizer,
    Manager,
    Result,
    Watch,
    to_singleton,
)
from quarterdeck.controller.metadata import is_being_deleted
from quarterdeck.kube import (
    Client,
    Conflict,
    ConnectionFailed,
    LabelSelector,
    NotFound,
    load_kubeconfig,
)
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.plugin import NewControlPlane
from quarterdeck.testing.waiting import eventually_async

OURS = {"example.test/part-of": "x"}
LABELLED = LabelSelector(match_labels=OURS)
OLD = "example.test/owned-by-old"
NEW = "example.test/owned-by-new"
FINALIZER = "example.test/clean-up"


def config_map(namespace: str, name: str, **data: str) -> Object:
    metadata = {"namespace": namespace, "name": name, "labels": OURS}
    return {"metadata": metadata, "data": data}


def deployment(namespace: str, **labels: str) -> Object:
    template = {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "example.test/c:1"}]},
    }
    selector = {"matchLabels": {"app": "x"}}
    return {
        "metadata": {"namespace": namespace, "name": "x", "labels": labels},
        "spec": {"replicas": 0, "selector": selector, "template": template},
    }


async def names(admin: Client, namespace: str) -> set[str]:
    found = await admin.list(CONFIG_MAPS, namespace, label_selector=str(LABELLED))
    return {obj["metadata"]["name"] for obj in found.items}


async def when_gone(objects: Any, key: Key) -> None:
    await eventually_async(lambda: objects.get(key) is None, "the object is gone")


# --- prune


async def test_what_is_ours_and_not_wanted_goes_and_a_foreign_object_of_the_same_label_stays(
    writer: Writer, namespace: str, admin: Client
) -> None:
    await admin.create(CONFIG_MAPS, config_map(namespace, "foreign"))
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        for name in ("kept", "old", "applied"):
            await config_maps.ensure(config_map(namespace, name))
        await config_maps.ensure(config_map(namespace, "applied", a="1"))
        foreign = config_maps.get(Key(namespace, "foreign"))
        # We may have written to it: it is not ours for that.
        await config_maps.patch(foreign, {"metadata": {"annotations": {"example.test/a": "1"}}})
        gone = await config_maps.prune({Key(namespace, "kept")}, LABELLED)
        assert sorted(key.name for key in gone) == ["applied", "old"]
        assert await names(admin, namespace) == {"foreign", "kept"}
        before = writer.tries()
        assert await config_maps.prune({Key(namespace, "kept")}, LABELLED) == []
        assert writer.tries() == before, "nothing to prune is no request"


async def test_what_was_changed_since_it_was_seen_is_not_pruned(
    writer: Writer, namespace: str, admin: Client
) -> None:
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        await config_maps.ensure(config_map(namespace, "old"))
    async with writer.objects(CONFIG_MAPS, namespace, follow=False) as stale:
        await admin.patch(CONFIG_MAPS, "old", {"data": {"a": "theirs"}}, namespace)
        with pytest.raises(Conflict):
            await stale.prune((), LABELLED)
    assert await names(admin, namespace) == {"old"}


async def test_one_that_cannot_be_pruned_keeps_no_other(
    writer: Writer, namespace: str, admin: Client
) -> None:
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        for name in ("a", "b", "c"):
            await config_maps.ensure(config_map(namespace, name))
    async with writer.objects(CONFIG_MAPS, namespace, follow=False) as stale:
        await admin.patch(CONFIG_MAPS, "a", {"data": {"a": "theirs"}}, namespace)
        with pytest.raises(Conflict):
            await stale.prune((), LABELLED)
    assert await names(admin, namespace) == {"a"}


async def test_a_selector_that_selects_everything_prunes_nothing(
    writer: Writer, namespace: str
) -> None:
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        await config_maps.ensure(config_map(namespace, "x"))
        with pytest.raises(ValueError, match="selects everything"):
            await config_maps.prune((), LabelSelector())


async def test_absent_deletes_once_and_says_when_the_object_is_gone(
    writer: Writer, namespace: str, admin: Client
) -> None:
    key = Key(namespace, "x")
    kept = config_map(namespace, "x")
    kept["metadata"]["finalizers"] = [FINALIZER]
    await admin.create(CONFIG_MAPS, kept)
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        assert not await config_maps.ensure_absent(key)
        await eventually_async(
            lambda: is_being_deleted(config_maps.get(key) or {"metadata": {}}),
            "it is being deleted",
        )
        assert not await config_maps.ensure_absent(key)
        assert writer.tries() == ["delete 200"]
        await admin.patch(CONFIG_MAPS, "x", {"metadata": {"finalizers": None}}, namespace)
        await when_gone(config_maps, key)
        assert await config_maps.ensure_absent(key)


# --- claim


@pytest.fixture
def writers(control_plane: ControlPlane, namespace: str) -> dict[str, Writer]:
    return {name: Writer(control_plane, namespace, name) for name in ("old", "new", "other")}


async def owned_by_old(old: Writer, namespace: str) -> None:
    """A Deployment that the old owner has created, and then applied once more."""
    async with old.objects(DEPLOYMENTS, namespace) as deployments:
        desired = deployment(namespace, a="1", b="2")
        desired["metadata"]["annotations"] = {OLD: ""}
        await deployments.ensure(desired)
        desired["metadata"]["labels"] = {"a": "1", "b": "3"}
        async with asyncio.timeout(60):
            while True:
                try:
                    await deployments.ensure(desired)
                except Conflict:
                    await asyncio.sleep(0.05)
                else:
                    return


def managers(obj: Object) -> set[tuple[str, str]]:
    """Who owns fields of the object itself, and how."""
    entries = obj["metadata"]["managedFields"]
    return {(it["manager"], it["operation"]) for it in entries if not it.get("subresource")}


async def claimed(claimer: Writer, namespace: str) -> Object:
    """The Deployment after this one has claimed it; tried again as a controller would."""
    key = Key(namespace, "x")
    async with asyncio.timeout(60), claimer.objects(DEPLOYMENTS, namespace) as deployments:
        while True:
            try:
                taken: Object = await deployments.claim(
                    deployments.get(key), "old", {OLD: None, NEW: ""}
                )
            except Conflict:
                await asyncio.sleep(0.05)
            else:
                return taken


async def test_a_claim_moves_the_object_and_all_that_its_owner_had(
    writers: dict[str, Writer], namespace: str, admin: Client
) -> None:
    await owned_by_old(writers["old"], namespace)
    before = await admin.get(DEPLOYMENTS, "x", namespace)
    assert {("old", "Update"), ("old", "Apply")} <= managers(before)
    taken = await claimed(writers["new"], namespace)
    assert taken["spec"]["template"] == before["spec"]["template"]
    assert taken["metadata"]["uid"] == before["metadata"]["uid"]
    assert set(taken["metadata"]["annotations"]) & {OLD, NEW} == {NEW}
    now = await admin.get(DEPLOYMENTS, "x", namespace)
    assert "old" not in {manager for manager, _ in managers(now)}
    assert ("new", "Apply") in managers(now)
    assert writers["new"].writes() == ["patch 200"], "one write"


async def test_after_a_claim_what_the_new_owner_does_not_want_goes(
    writers: dict[str, Writer], namespace: str, admin: Client
) -> None:
    await owned_by_old(writers["old"], namespace)
    before = await claimed(writers["new"], namespace)
    async with writers["new"].objects(DEPLOYMENTS, namespace) as deployments:
        desired = deployment(namespace, a="1")
        desired["metadata"]["annotations"] = {NEW: ""}
        async with asyncio.timeout(60):
            while True:
                try:
                    await deployments.ensure(desired)
                except Conflict:
                    await asyncio.sleep(0.05)
                else:
                    break
    now = await admin.get(DEPLOYMENTS, "x", namespace)
    assert now["metadata"]["labels"] == {"a": "1"}
    assert now["spec"]["template"] == before["spec"]["template"], "no roll-out"


async def test_of_several_who_claim_at_once_one_succeeds(
    writers: dict[str, Writer], namespace: str, admin: Client
) -> None:
    await owned_by_old(writers["old"], namespace)
    async with (
        asyncio.timeout(60),
        writers["new"].objects(DEPLOYMENTS, namespace, follow=False) as one,
        writers["other"].objects(DEPLOYMENTS, namespace, follow=False) as other,
    ):
        ends: list[Any] = []
        # The server's own controllers write its status, so that both may be too late.
        while all(isinstance(end, Conflict) for end in ends):
            live = await admin.get(DEPLOYMENTS, "x", namespace)
            ends = await asyncio.gather(
                *(it.claim(live, "old", {OLD: None, NEW: ""}) for it in (one, other)),
                return_exceptions=True,
            )
    assert sorted(type(end).__name__ for end in ends) == ["Conflict", "dict"]
    tries = [*writers["new"].tries(), *writers["other"].tries()]
    assert tries.count("patch 200") == 1
    assert set(tries) == {"patch 200", "patch 409"}


async def test_a_claim_of_an_object_that_somebody_changed_is_refused(
    writers: dict[str, Writer], namespace: str, admin: Client
) -> None:
    await owned_by_old(writers["old"], namespace)
    async with writers["new"].objects(DEPLOYMENTS, namespace, follow=False) as stale:
        seen = stale.get(Key(namespace, "x"))
        await admin.patch(DEPLOYMENTS, "x", {"metadata": {"labels": {"c": "1"}}}, namespace)
        with pytest.raises(Conflict):
            await stale.claim(seen, "old", {OLD: None, NEW: ""})
        await admin.delete(DEPLOYMENTS, "x", namespace)
        with pytest.raises(NotFound):
            await stale.claim(seen, "old", {OLD: None, NEW: ""})


# --- finalizers


async def test_an_object_stays_until_it_is_cleaned_up_after(
    writer: Writer, namespace: str, admin: Client
) -> None:
    key, left = Key(namespace, "x"), [3]

    async def clean_up(_obj: Object) -> bool:
        left[0] -= 1
        return left[0] == 0

    await admin.create(CONFIG_MAPS, config_map(namespace, "x"))
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        finalizer = Finalizer(config_maps, FINALIZER, clean_up)
        held = await finalizer.add_or_clean_up(config_maps.get(key))
        assert held is not None
        assert await finalizer.add_or_clean_up(held) == held
        assert writer.writes() == ["patch 200"], "settled: nothing more is written"
        await admin.delete(CONFIG_MAPS, "x", namespace)
        async with asyncio.timeout(60):
            while (obj := config_maps.get(key)) is not None:
                if "deletionTimestamp" in obj["metadata"]:
                    assert await finalizer.add_or_clean_up(obj) is None
                await asyncio.sleep(0.02)
    assert left == [0]
    assert writer.writes() == ["patch 200", "patch 200"]


async def test_finalizers_of_others_stay(writer: Writer, namespace: str, admin: Client) -> None:
    theirs = config_map(namespace, "x")
    theirs["metadata"]["finalizers"] = ["example.test/theirs"]
    await admin.create(CONFIG_MAPS, theirs)
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        held = await config_maps.ensure_finalizer(config_maps.get(Key(namespace, "x")), FINALIZER)
        assert held["metadata"]["finalizers"] == ["example.test/theirs", FINALIZER]
        await config_maps.remove_finalizer(held, FINALIZER)
        found = await admin.get(CONFIG_MAPS, "x", namespace)
        assert found["metadata"]["finalizers"] == ["example.test/theirs"]
        await admin.patch(CONFIG_MAPS, "x", {"metadata": {"finalizers": None}}, namespace)


async def test_a_finalizer_holds_while_the_server_is_away(
    new_control_plane: NewControlPlane,
) -> None:
    """What could not be taken away is tried again; until then the object stays."""
    plane = new_control_plane(started=False)
    await asyncio.to_thread(plane.start, "etcd", "kube-apiserver")
    cleaning, away = asyncio.Event(), asyncio.Event()
    failed: list[Exception] = []

    def setup(manager: Manager) -> None:
        config_maps = manager.objects(CONFIG_MAPS, writes=["ensure", "delete", "finalizer"])

        async def clean_up(obj: Object) -> bool:
            cleaning.set()
            await away.wait()
            try:
                return await config_maps.ensure_absent(Key("default", "backend"))
            except ConnectionFailed as error:
                failed.append(error)
                raise

        finalizer = Finalizer(config_maps, FINALIZER, clean_up)

        async def reconcile(key: Key) -> Result:
            obj = config_maps.get(key)
            if key.name == "x" and obj is not None and await finalizer.add_or_clean_up(obj):
                await config_maps.ensure(config_map("default", "backend"))
            return DONE

        watch = Watch(config_maps, to_singleton(Key("default", "x")))
        manager.add(Controller("holder", reconcile, [watch]))

    process = make_process(plane.kubeconfig, [operator("holder", setup)], "default")
    async with (
        Client(load_kubeconfig(plane.kubeconfig)) as admin,
        running(process) as task,
    ):
        await admin.create(CONFIG_MAPS, config_map("default", "x"))
        await until_named(admin, {"x", "backend"}, task)
        await admin.delete(CONFIG_MAPS, "x", "default")
        async with asyncio.timeout(LIMIT):
            await cleaning.wait()
        await asyncio.to_thread(plane.kill, "kube-apiserver")
        away.set()
        await when(lambda: bool(failed), task)
        await asyncio.to_thread(plane.start, "kube-apiserver")
        await until_named(admin, set(), task)
    assert failed


async def until_named(admin: Client, wanted: set[str], task: "asyncio.Task[None]") -> None:
    """Return when these are the ConfigMaps of the label; `backend` never outlives `x`."""
    async with asyncio.timeout(LIMIT):
        while (found := await names(admin, "default")) != wanted:
            assert found != {"backend"}, "the object went before what it had made"
            assert not task.done()
            await asyncio.sleep(0.05)
