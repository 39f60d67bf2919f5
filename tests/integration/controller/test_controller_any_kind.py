"""Objects of kinds that are known only at run time. On a real API server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.objects import config_map

from quarterdeck.api.meta import CONFIG_MAPS, CRDS, Key, Object
from quarterdeck.controller import key_of
from quarterdeck.controller.any_kind import AnyKind, CannotRead
from quarterdeck.kube import Client, load_kubeconfig
from quarterdeck.kube.kinds import GroupVersionKind
from quarterdeck.localcluster import ControlPlane
from quarterdeck.status.rollout import DONE, definition
from quarterdeck.testing.audit import requests_by
from quarterdeck.testing.waiting import eventually_async

MANAGER = "any-kind"
MAPS = GroupVersionKind("", "v1", "ConfigMap")
DEFINITIONS = GroupVersionKind.of({"apiVersion": CRDS.api_version, "kind": CRDS.kind})


@pytest.fixture
async def client(kubeconfig: Path) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(kubeconfig)) as client:
        yield client


class Told:
    """The changes that were told."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, Key]] = []

    def __call__(self, kind: GroupVersionKind, key: Key) -> None:
        self.keys.append((kind.kind, key))


def gadgets(namespace: str) -> Object:
    """The definition of a kind that only this test has."""
    group = f"{namespace}.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Gadget", "plural": "gadgets"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


async def test_a_definition_and_then_an_object_of_its_kind_are_applied(
    client: Client, namespace: str
) -> None:
    """Discovery lags behind the definition, and is not waited for."""
    told, made = Told(), gadgets(namespace)
    kind = GroupVersionKind(made["spec"]["group"], "v1", "Gadget")
    gadget = {
        "apiVersion": f"{kind.group}/v1",
        "kind": "Gadget",
        "metadata": {"name": "one", "namespace": namespace},
        "spec": {"size": 3},
    }
    try:
        async with AnyKind(client, MANAGER, on_change=told) as objects:
            objects.want({DEFINITIONS: [key_of(made)], kind: [key_of(gadget)]})
            assert await objects.follow(kind) is None
            definitions = await objects.follow(DEFINITIONS)
            assert definitions is not None
            await definitions.objects.ensure(made)

            def established() -> bool:
                live = definitions.objects.get(key_of(made))
                return live is not None and definition(live) == DONE

            await eventually_async(established, "the definition is served")
            objects.kinds.learn(definitions.objects.get(key_of(made)) or {})
            found = await objects.follow(kind)
            assert found is not None
            await found.objects.ensure(gadget)
            stored = await client.get(found.resource, "one", namespace)
            assert stored["spec"] == {"size": 3}
            assert objects.kinds.versions(kind) == ["v1"]
            assert ("Gadget", key_of(gadget)) in told.keys
    finally:
        await client.delete(CRDS, made["metadata"]["name"])


async def test_only_wanted_objects_are_kept_and_settled_ones_need_no_request(
    control_plane: ControlPlane, client: Client, namespace: str
) -> None:
    user = f"any-kind-{namespace}"
    wanted = [config_map(namespace, name, a="1") for name in ("x", "y")]
    await client.create(CONFIG_MAPS, config_map(namespace, "other", a="1"))
    connection = load_kubeconfig(control_plane.kubeconfig_for(user, ["system:masters"]))
    told = Told()
    async with Client(connection) as own, AnyKind(own, MANAGER, on_change=told) as objects:
        objects.want({MAPS: [key_of(one) for one in wanted]})
        assert objects.followed(MAPS) is None
        found = await objects.follow(MAPS)
        assert found is not None
        for one in wanted:
            await found.objects.ensure(one)
        assert {key.name for _, key in told.keys} == {"x", "y"}
        assert {key_of(one).name for one in found.objects.all()} == {"x", "y"}
        before = len(requests_by(control_plane.audit_log, user))
        assert objects.followed(MAPS) is found
        assert await objects.follow(MAPS) is found
        for one in wanted:
            await found.objects.ensure(one)
        assert len(requests_by(control_plane.audit_log, user)) == before

        await client.patch(CONFIG_MAPS, "x", {"data": {"a": "2"}}, namespace)
        await eventually_async(
            lambda: (found.objects.get(Key(namespace, "x")) or {})["data"] == {"a": "2"},
            "the change is seen",
        )
        # Another set of objects is another cache; what was watched before is told no more.
        objects.want({MAPS: [Key(namespace, "other")]})
        assert objects.followed(MAPS) is None
        again = await objects.follow(MAPS)
        assert again is not None
        assert [key_of(one).name for one in again.objects.all()] == ["other"]
        told.keys.clear()
        await client.patch(CONFIG_MAPS, "x", {"data": {"a": "3"}}, namespace)
        await client.patch(CONFIG_MAPS, "other", {"data": {"a": "3"}}, namespace)
        await eventually_async(lambda: told.keys, "a change is told")
        assert {key.name for _, key in told.keys} == {"other"}


async def test_a_kind_that_may_not_be_read_is_an_error_with_the_servers_reason(
    control_plane: ControlPlane, namespace: str
) -> None:
    user = f"nobody-{namespace}"
    connection = load_kubeconfig(control_plane.kubeconfig_for(user, []))
    async with Client(connection) as own, AnyKind(own, MANAGER, on_change=Told()) as objects:
        objects.want({MAPS: [Key(namespace, "x")]})
        with pytest.raises(CannotRead, match=f'"{user}" cannot (list|watch)'):
            await objects.follow(MAPS)


async def test_what_is_not_wanted_cannot_be_followed(client: Client) -> None:
    async with AnyKind(client, MANAGER, on_change=Told()) as objects:
        with pytest.raises(LookupError, match="call `want` before"):
            await objects.follow(MAPS)


async def test_what_is_raised_inside_ends_the_watches_and_comes_out_as_it_is(
    client: Client, namespace: str
) -> None:
    async def fail_inside() -> None:
        async with AnyKind(client, MANAGER, on_change=Told()) as objects:
            objects.want({MAPS: [Key(namespace, "x")]})
            await objects.follow(MAPS)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_inside()
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert not [name for name in names if name.startswith(MANAGER)]
