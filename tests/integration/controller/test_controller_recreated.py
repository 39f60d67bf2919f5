"""Writes about an object that is not the one that was seen, or that many have written to.

On a real API server.
"""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from tests.integration.controller.writer import Writer

from quarterdeck.api.meta import CONFIG_MAPS, Key, Object
from quarterdeck.api.samples_v1alpha1 import NOTES
from quarterdeck.controller import Finalizer, Objects
from quarterdeck.controller.metadata import is_being_deleted
from quarterdeck.kube import Client, Conflict, NotFound
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.waiting import eventually_async

FINALIZER = "example.test/clean-up"
THEIRS = "example.test/theirs"
PLAIN = NOTES.plain


def note(namespace: str, text: str = "x", **metadata: Any) -> Object:
    named = {"namespace": namespace, "name": "x", **metadata}
    return {
        "apiVersion": PLAIN.api_version,
        "kind": PLAIN.kind,
        "metadata": named,
        "spec": {"text": text},
    }


async def recreate(admin: Client, namespace: str, **metadata: Any) -> Object:
    """Another object of the same name, once the first is gone."""
    await admin.patch(PLAIN, "x", {"metadata": {"finalizers": None}}, namespace)
    with suppress(NotFound):  # the patch may be all that it waited for
        await admin.delete(PLAIN, "x", namespace)
    made: Object = await admin.create(PLAIN, note(namespace, "theirs", **metadata))
    return made


async def test_no_write_reaches_an_object_that_came_under_the_same_name(
    writer: Writer, namespace: str, admin: Client
) -> None:
    key = Key(namespace, "x")
    await admin.create(PLAIN, note(namespace, finalizers=[FINALIZER]))
    async with writer.objects(PLAIN, namespace, follow=False) as notes:
        seen = notes.get(key)
        other = await recreate(admin, namespace, finalizers=[FINALIZER])
        stale = Objects(PLAIN, notes.cache, notes._client, writer.manager)
        for write in (
            lambda: stale.patch(seen, {"spec": {"text": "ours"}}),
            lambda: stale.set_status(seen, {"observedGeneration": 7}),
            lambda: stale.set_status(seen, {"conditions": [None]}),
            lambda: stale.ensure(note(namespace, "ours")),
            lambda: stale.claim(seen, "old", {"a": "b"}),
            lambda: stale.ensure_finalizer(seen, "example.test/another"),
            lambda: stale.remove_finalizer(seen, FINALIZER),
            lambda: stale.ensure_absent(key),
            lambda: stale.delete(seen),
        ):
            with pytest.raises(Conflict):
                await write()
        assert await admin.get(PLAIN, "x", namespace) == other
        await admin.patch(PLAIN, "x", {"metadata": {"finalizers": None}}, namespace)
        await admin.delete(PLAIN, "x", namespace)
        # Nor do they bring back one that is gone.
        with pytest.raises(Conflict):
            await stale.ensure(note(namespace, "ours"))
        for write in (
            lambda: stale.patch(seen, {"spec": {"text": "ours"}}),
            lambda: stale.set_status(seen, {"observedGeneration": 7}),
            lambda: stale.ensure_finalizer(seen, "example.test/another"),
        ):
            with pytest.raises(NotFound):
                await write()
        await stale.remove_finalizer(seen, FINALIZER)
        await stale.ensure_absent(key)
    assert writer.writes() == []
    assert (await admin.list(PLAIN, namespace)).items == []


async def test_an_object_whose_name_the_server_makes_is_created_once(
    writer: Writer, namespace: str, admin: Client
) -> None:
    async with writer.objects(CONFIG_MAPS, namespace) as config_maps:
        metadata = {"namespace": namespace, "generateName": "made-"}
        made = await config_maps.create({"metadata": metadata})
        assert made["metadata"]["name"].startswith("made-")


# --- finalizers


async def until_going(objects: Any, key: Key) -> Object:
    def look() -> Object | None:
        obj: Object | None = objects.get(key)
        return obj if obj is not None and is_being_deleted(obj) else None

    return await eventually_async(look, "the object is being deleted")


async def test_an_object_that_came_during_the_clean_up_keeps_its_finalizers(
    writer: Writer, namespace: str, admin: Client
) -> None:
    key, cleaned = Key(namespace, "x"), []

    async def clean_up(obj: Object) -> bool:
        cleaned.append(obj["metadata"]["uid"])
        await recreate(admin, namespace, finalizers=[FINALIZER, THEIRS])
        return True

    first = await admin.create(PLAIN, note(namespace, finalizers=[FINALIZER]))
    await admin.delete(PLAIN, "x", namespace)
    async with writer.objects(PLAIN, namespace) as notes:
        finalizer = Finalizer(notes, FINALIZER, clean_up)
        with pytest.raises(Conflict):
            await finalizer.add_or_clean_up(await until_going(notes, key))
        await eventually_async(
            lambda: (notes.get(key) or first)["metadata"]["uid"] != first["metadata"]["uid"],
            "another object of this name",
        )
        assert await finalizer.add_or_clean_up(notes.get(key)) is not None
    found = await admin.get(PLAIN, "x", namespace)
    assert found["metadata"]["finalizers"] == [FINALIZER, THEIRS]
    assert cleaned == [first["metadata"]["uid"]]
    assert writer.writes() == []
    await admin.patch(PLAIN, "x", {"metadata": {"finalizers": None}}, namespace)


async def test_finalizers_that_others_add_or_remove_during_the_clean_up_stay_so(
    writer: Writer, namespace: str, admin: Client
) -> None:
    key, runs = Key(namespace, "x"), 0

    async def clean_up(_: Object) -> bool:
        nonlocal runs
        runs += 1
        if runs == 1:  # somebody else is done, while we are at it
            left = {"metadata": {"finalizers": [FINALIZER, "example.test/b"]}}
            await admin.patch(PLAIN, "x", left, namespace)
        return True

    held = [FINALIZER, "example.test/a", "example.test/b"]
    await admin.create(PLAIN, note(namespace, finalizers=held))
    await admin.delete(PLAIN, "x", namespace)
    async with asyncio.timeout(60), writer.objects(PLAIN, namespace) as notes:
        finalizer = Finalizer(notes, FINALIZER, clean_up)
        while FINALIZER in (await until_going(notes, key))["metadata"]["finalizers"]:
            try:
                assert await finalizer.add_or_clean_up(notes.get(key)) is None
            except Conflict:
                await asyncio.sleep(0.02)
        found = await admin.get(PLAIN, "x", namespace)
        assert found["metadata"]["finalizers"] == ["example.test/b"]
        before = runs
        assert await finalizer.add_or_clean_up(notes.get(key)) is None
        assert (runs, writer.writes()) == (before, ["patch 200"]), "what is done is not done again"
        await admin.patch(PLAIN, "x", {"metadata": {"finalizers": None}}, namespace)


# --- claim


async def test_a_claim_from_two_owners_among_many_takes_theirs_and_no_more(
    control_plane: ControlPlane, crds: list[str], namespace: str, admin: Client
) -> None:
    """Created, applied, updated and status entries of both, beside thirty others'."""
    new = Writer(control_plane, namespace, "new")
    await admin.create(PLAIN, note(namespace, labels={"created": "1"}), field_manager="old")
    for owner in ("old", "older"):
        both = note(namespace, labels={"both": "1", f"applied-{owner}": "1"})
        await admin.apply(PLAIN, both, field_manager=owner)
        updated = {"metadata": {"labels": {f"updated-{owner}": "1"}}}
        await admin.patch(PLAIN, "x", updated, namespace, field_manager=owner)
    for number, owner in enumerate(("old", "older", "new", "somebody")):
        status = {"status": {"observedGeneration": number}}
        await admin.patch(PLAIN, "x", status, namespace, subresource="status", field_manager=owner)
    for number in range(30):
        # Applied: of managers that updated the server keeps ten, and joins older ones under a name.
        theirs = note(namespace, labels={f"theirs-{number}": "1"})
        await admin.apply(PLAIN, theirs, field_manager=f"other-{number}")
    before = await admin.get(PLAIN, "x", namespace)
    async with new.objects(PLAIN, namespace) as notes:
        obj = notes.get(Key(namespace, "x"))
        for owner in ("old", "older"):
            obj = await notes.claim(obj, owner, {owner: None, "claimed": "yes"})
        assert new.writes() == ["patch 200"] * 2
        after = await admin.get(PLAIN, "x", namespace)
        assert {**after, "metadata": None} == {**before, "metadata": None}
        assert others(after, "new") == {
            it: fields
            for it, fields in others(before, "new").items()
            if it[0] not in ("old", "older")
        }
        identities = [
            tuple(it.get(field) for field in ("manager", "operation", "apiVersion", "subresource"))
            for it in after["metadata"]["managedFields"]
        ]
        assert len(identities) == len(set(identities))
        # What the two had is ours now: what we do not want goes, and all others' stays.
        async with asyncio.timeout(60):
            while True:
                try:
                    await notes.ensure(note(namespace, labels={"both": "1"}))
                except Conflict:
                    await asyncio.sleep(0.02)
                else:
                    break
    found = await admin.get(PLAIN, "x", namespace)
    theirs = {f"theirs-{number}": "1" for number in range(30)}
    assert found["metadata"]["labels"] == {"both": "1", **theirs}
    assert found["status"] == before["status"]


def others(obj: Object, manager: str) -> dict[tuple[str, str, str], Object]:
    """What others than this manager own."""
    return {
        (it["manager"], it["operation"], it.get("subresource", "")): it["fieldsV1"]
        for it in obj["metadata"]["managedFields"]
        if it["manager"] != manager
    }
