"""Reading and writing owned objects: only what is needed, and fenced. On a real API server."""

import asyncio
from typing import Any

import pytest
from tests.integration.controller.writer import Writer
from tests.objects import note

from quarterdeck.api.meta import CONFIG_MAPS, DEPLOYMENTS, SECRETS, Key, Object
from quarterdeck.api.samples_v1alpha1 import NOTES, NoteSpec, NoteStatus
from quarterdeck.controller import Objects, key_of, owned_by
from quarterdeck.kube import AlreadyExists, Client, Conflict
from quarterdeck.testing.waiting import eventually_async


async def settle(objects: Objects[Any], desired: Object) -> Any:
    """The object once it is as desired; as a controller would, a conflict is tried again.

    Others write to a Deployment too: the server's own controllers, its status.
    """
    async with asyncio.timeout(60):
        while True:
            try:
                await objects.ensure(desired)
            except Conflict:
                await asyncio.sleep(0.05)
            else:
                return objects.get(key_of(desired))


def config_map(namespace: str, **data: str) -> Object:
    return {"metadata": {"namespace": namespace, "name": "x"}, "data": data}


def deployment(namespace: str, **container: Any) -> Object:
    """One that the server writes differently from how we do."""
    labels = {"app": "x"}
    runs = {
        "name": "c",
        "image": "example.test/c:1",
        "env": [{"name": "EMPTY", "value": ""}, {"name": "FULL", "value": "1"}],
        "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
        "ports": [{"containerPort": 80}],
        **container,
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [runs]}}
    return {
        "metadata": {"namespace": namespace, "name": "x", "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template},
    }


async def test_an_object_that_the_server_normalises_is_written_once(
    writer: Writer, namespace: str
) -> None:
    """Then never again, neither by the one who wrote it nor after a restart."""
    desired = deployment(namespace)
    async with writer.objects(DEPLOYMENTS, namespace) as deployments:
        for _ in range(3):
            await settle(deployments, desired)
    async with writer.objects(DEPLOYMENTS, namespace) as deployments:
        spec = (await settle(deployments, desired))["spec"]["template"]["spec"]
    assert writer.writes() == ["create 201"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}
    assert spec["containers"][0]["env"][0] == {"name": "EMPTY"}


async def test_a_changed_value_is_one_write(writer: Writer, namespace: str) -> None:
    async with writer.objects(DEPLOYMENTS, namespace) as deployments:
        await settle(deployments, deployment(namespace))
        for image in ("example.test/c:2", "example.test/c:3", "example.test/c:3"):
            await settle(deployments, deployment(namespace, image=image))
    assert writer.writes() == ["create 201", "patch 200", "patch 200"]


@pytest.mark.parametrize("applied_before", [False, True], ids=["created", "created and applied"])
async def test_a_field_that_is_no_longer_wanted_is_removed(
    writer: Writer, namespace: str, applied_before: bool
) -> None:
    """Also one that was created: the server records its ownership in another way."""
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        await config_maps.ensure(config_map(namespace, a="1", b="2"))
        if applied_before:
            await config_maps.ensure(config_map(namespace, a="1", b="3"))
        for left in ({"a": "1"}, {}):
            live = await settle(config_maps, config_map(namespace, **left))
            assert live.get("data", {}) == left
            before = writer.writes()
            await config_maps.ensure(config_map(namespace, **left))
            assert writer.writes() == before


async def test_a_part_of_a_deployment_that_is_no_longer_wanted_is_removed(
    writer: Writer, namespace: str
) -> None:
    async with writer.objects(DEPLOYMENTS, namespace) as deployments:
        await settle(deployments, deployment(namespace))
        one = [{"name": "FULL", "value": "1"}]
        live = await settle(deployments, deployment(namespace, env=one, resources={}))
        container = live["spec"]["template"]["spec"]["containers"][0]
        assert (container["env"], container["resources"]) == (one, {})
        assert live["metadata"]["generation"] == 2, "one roll-out, not two"
        before = writer.writes()
        await settle(deployments, deployment(namespace, env=one, resources={}))
        assert writer.writes() == before


async def test_what_the_server_writes_in_a_way_that_we_do_not_know_is_not_written_for_ever(
    writer: Writer, namespace: str, admin: Client
) -> None:
    """A Secret's `stringData` is never there to compare with: the server says when it is so."""
    metadata = {"namespace": namespace, "name": "x"}
    async with writer.objects(SECRETS, namespace) as secrets:
        for _ in range(10):
            await settle(secrets, {"metadata": metadata, "stringData": {"a": "1"}})
        assert len(writer.writes()) <= 4
        live = await settle(secrets, {"metadata": metadata, "stringData": {"a": "2"}})
        assert live["data"] == {"a": "Mg=="}, "a change of what we want is written"
        before = len(writer.writes())
        theirs = await admin.patch(SECRETS, "x", {"data": {"a": "Mw=="}}, namespace)
        secrets.cache.put(theirs)
        live = await settle(secrets, {"metadata": metadata, "stringData": {"a": "2"}})
        assert live["data"] == {"a": "Mg=="}, "and so is a change by others"
        assert len(writer.writes()) == before + 1


async def test_nothing_is_remembered_of_an_object_that_is_gone(
    writer: Writer, namespace: str, admin: Client
) -> None:
    key = Key(namespace, "x")
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        for _ in range(2):
            live = await config_maps.ensure(config_map(namespace, a="1"))
            remembered = vars(config_maps)["_settled"]
            assert list(remembered) == [key_of(live)]
            await admin.delete(CONFIG_MAPS, "x", namespace)
            await eventually_async(lambda: config_maps.get(key) is None, "it is gone", 30)
            assert remembered == {}
        assert writer.writes() == ["create 201", "create 201"]


async def test_fields_of_others_are_left_alone(
    writer: Writer, namespace: str, admin: Client
) -> None:
    async with writer.objects(CONFIG_MAPS, namespace, follow=True) as config_maps:
        await config_maps.ensure(config_map(namespace, a="1"))
        await admin.patch(CONFIG_MAPS, "x", {"data": {"theirs": "2"}}, namespace)
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        await config_maps.ensure(config_map(namespace, a="2"))
    found = await admin.get(CONFIG_MAPS, "x", namespace)
    assert found["data"] == {"a": "2", "theirs": "2"}


async def test_a_stale_view_of_a_changed_object_is_refused(
    writer: Writer, namespace: str, admin: Client
) -> None:
    await admin.create(CONFIG_MAPS, {**config_map(namespace, a="1")})
    async with writer.objects(CONFIG_MAPS, namespace, follow=False) as stale:
        await admin.patch(CONFIG_MAPS, "x", {"data": {"a": "theirs"}}, namespace)
        with pytest.raises(Conflict):
            await stale.ensure(config_map(namespace, a="2"))
    assert (await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"a": "theirs"}


async def test_a_write_that_was_decided_on_an_older_object_is_refused(
    writer: Writer, namespace: str, admin: Client
) -> None:
    """Even if the cache has the newer one; without `seen`, that one counts."""
    await admin.create(CONFIG_MAPS, config_map(namespace, a="1"))
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        seen = config_maps.get(Key(namespace, "x"))
        await admin.patch(CONFIG_MAPS, "x", {"data": {"a": "theirs"}}, namespace)
        await eventually_async(
            lambda: config_maps.get(Key(namespace, "x")) is not seen, "the cache has the change"
        )
        with pytest.raises(Conflict):
            await config_maps.ensure(config_map(namespace, a="2"), seen=seen)
        assert (await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"a": "theirs"}
        await config_maps.ensure(config_map(namespace, a="2"))
    assert (await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"a": "2"}


async def test_a_stale_view_of_a_deleted_object_does_not_bring_it_back(
    writer: Writer, namespace: str, admin: Client
) -> None:
    """An apply with a resourceVersion alone would: the uid makes it a conflict."""
    await admin.create(CONFIG_MAPS, config_map(namespace, a="1"))
    async with writer.objects(CONFIG_MAPS, namespace, follow=False) as stale:
        await admin.delete(CONFIG_MAPS, "x", namespace)
        with pytest.raises(Conflict):
            await stale.ensure(config_map(namespace, a="2"))
        assert (
            await admin.list(CONFIG_MAPS, namespace, field_selector="metadata.name=x")
        ).items == []


async def test_a_stale_view_of_a_created_field_is_not_rebooked(
    writer: Writer, namespace: str, admin: Client
) -> None:
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        await config_maps.ensure(config_map(namespace, a="1", b="2"))
    async with writer.objects(CONFIG_MAPS, namespace, follow=False) as stale:
        await admin.patch(CONFIG_MAPS, "x", {"data": {"a": "theirs"}}, namespace)
        with pytest.raises(Conflict):
            await stale.ensure(config_map(namespace, a="1"))
    assert (await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"a": "theirs", "b": "2"}


async def test_a_stale_view_without_an_object_does_not_overwrite_it(
    writer: Writer, namespace: str, admin: Client
) -> None:
    async with writer.objects(CONFIG_MAPS, namespace, follow=False) as stale:
        await admin.create(CONFIG_MAPS, config_map(namespace, a="theirs"))
        with pytest.raises(AlreadyExists):
            await stale.ensure(config_map(namespace, a="1"))
    assert (await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"a": "theirs"}


async def test_an_object_of_ours_that_the_cache_does_not_see_is_put_right(
    writer: Writer, namespace: str, admin: Client
) -> None:
    """Its label was taken away, or the cache is behind: its controller tells that it is ours."""
    owner = await admin.create(CONFIG_MAPS, {"metadata": {"namespace": namespace, "name": "o"}})
    desired = config_map(namespace, a="1")
    desired["metadata"] |= owned_by(owner)
    async with writer.objects(CONFIG_MAPS, namespace, follow=False) as unseen:
        await admin.create(CONFIG_MAPS, {**desired, "data": {"a": "other"}})
        await unseen.ensure(desired)
    assert (await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"a": "1"}


async def test_only_the_object_that_was_seen_is_deleted(
    writer: Writer, namespace: str, admin: Client
) -> None:
    await admin.create(CONFIG_MAPS, config_map(namespace, a="1"))
    async with writer.objects(CONFIG_MAPS, namespace, follow=False) as stale:
        seen = stale.get(Key(namespace, "x"))
        await admin.delete(CONFIG_MAPS, "x", namespace)
        await stale.delete(seen)
        await admin.create(CONFIG_MAPS, config_map(namespace, a="another"))
        with pytest.raises(Conflict):
            await stale.delete(seen)


async def test_a_status_is_written_when_it_differs_and_only_to_what_was_seen(
    writer: Writer, namespace: str, admin: Client
) -> None:
    made = await admin.create(NOTES, note("x", "a", namespace))
    assert made.spec == NoteSpec(text="a")
    key = Key(namespace, "x")
    async with writer.objects(NOTES, namespace) as notes:
        for status in (NoteStatus(observed_generation=1), NoteStatus()):
            for _ in range(2):
                await notes.set_status(notes.get(key), status)
                now: Any = notes.get(key)
                assert now.status == status
    assert writer.writes() == ["patch 200", "patch 200"]
    async with writer.objects(NOTES, namespace, follow=False) as stale:
        await admin.patch(NOTES, "x", {"spec": {"text": "b"}}, namespace)
        with pytest.raises(Conflict):
            await stale.set_status(stale.get(key), NoteStatus(observed_generation=1))
