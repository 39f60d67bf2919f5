"""Faults between the engine and the server: rights, failures, other writers, duplicates."""

import asyncio
from functools import partial

import pytest
from tests.integration.operators.cluster_version.sync.engine import Engine, eventually, manifest
from tests.objects import config_map

from quarterdeck.api.meta import CONFIG_MAPS, foreign
from quarterdeck.kube import Client, NotFound
from quarterdeck.localcluster import ControlPlane
from quarterdeck.operators.cluster_version.sync.schedule import WRITES_AT_ONCE
from quarterdeck.payload.graph import Mode
from quarterdeck.testing.fault_proxy import Answer, Cut, FaultProxy, Late

ROLE_BINDINGS = foreign(
    "rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", namespaced=True
)


def bound(engine: Engine, namespace: str) -> dict[str, object]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "engine", "namespace": namespace},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": engine.user}],
    }


async def test_missing_rights_are_a_fault_and_it_goes_on_when_they_are_there(
    control_plane: ControlPlane, crds: list[str], admin: Client, namespace: str
) -> None:
    engine = Engine(control_plane, namespace, groups=[])
    async with engine.running(manifest(config_map(namespace))) as run:
        progress = await engine.until(lambda report: report.faults)
        assert progress.faults[0].reason == "CannotRead"
        assert "forbidden" in progress.faults[0].message
        await admin.create(ROLE_BINDINGS, bound(engine, namespace))
        async with asyncio.timeout(90):
            assert (await run).completed
    assert engine.writes() == ["create configmaps x"]


@pytest.mark.parametrize("fault", [Answer(500), Answer(429, retry_after=1), Cut(0)])
async def test_a_server_that_fails_now_and_then_is_asked_again(
    engine: Engine, fault_proxy: FaultProxy, namespace: str, fault: Answer | Cut
) -> None:
    """Nothing is lost, and nothing is written twice."""
    engine.connection = fault_proxy.connection()
    names = [f"c{number}" for number in range(12)]
    payload = [manifest(config_map(namespace, n), f"0000_10_{n}_01.yaml") for n in names]
    fault_proxy.inject(fault, verb="watch", times=2)
    fault_proxy.inject(fault, verb="create", times=8)
    progress = await engine.run(*payload)
    assert progress.completed
    made = [seen for seen in fault_proxy.seen if seen.verb == "create"]
    assert len(made) >= len(names)
    again = await engine.run(*payload, mode=Mode.RECONCILING)
    assert again.completed
    assert len([seen for seen in fault_proxy.seen if seen.verb == "create"]) == len(made)
    assert fault_proxy.count(verb="patch") == 0


@pytest.mark.parametrize("verb", ["create", "patch"])
async def test_a_change_that_is_seen_before_the_answer_to_our_write_is_mended(
    engine: Engine, fault_proxy: FaultProxy, admin: Client, namespace: str, verb: str
) -> None:
    """What the server answered is as the manifest says; what the cache has by then is not."""
    engine.connection = fault_proxy.connection()
    fault_proxy.inject(Late(1.0), verb=verb, resource="configmaps", times=1)
    if verb == "patch":
        await admin.create(CONFIG_MAPS, config_map(namespace, a="before"))

    async def has(value: str) -> bool:
        try:
            return bool((await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"a": value})
        except NotFound:
            return False

    async with engine.keeping(manifest(config_map(namespace, a="ours")), waited_for=False):
        await eventually(partial(has, "ours"))
        await admin.patch(CONFIG_MAPS, "x", {"data": {"a": "theirs"}}, namespace)
        assert not engine.reports or not engine.latest.completed, "the answer was not late"
        await eventually(partial(has, "ours"))


async def test_two_manifests_of_one_object_do_not_undo_each_other(
    engine: Engine, admin: Client, namespace: str
) -> None:
    first = manifest(config_map(namespace, a="1"), "0000_10_part_01.yaml")
    other = manifest(config_map(namespace, a="2"), "0000_10_part_02.yaml")
    same = manifest(config_map(namespace, a="1"), "0000_10_part_03.yaml")
    progress = await engine.run(first, other, same, mode=Mode.RECONCILING)
    assert [fault.reason for fault in progress.faults] == ["DuplicateManifest"]
    assert "0000_10_part_01.yaml:1" in progress.faults[0].message
    assert progress.done == 2
    assert (await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"a": "1"}
    assert engine.writes() == ["create configmaps x"]


async def test_somebody_who_undoes_every_write_does_not_make_a_storm(
    engine: Engine, admin: Client, namespace: str
) -> None:
    async with engine.keeping(manifest(config_map(namespace, a="1"))):
        for _ in range(3 * WRITES_AT_ONCE):
            await admin.patch(CONFIG_MAPS, "x", {"data": {"a": "theirs"}}, namespace)
            await asyncio.sleep(0.02)

        async def written() -> bool:
            return len(engine.writes()) >= WRITES_AT_ONCE

        await eventually(written)
        assert len(engine.writes()) <= WRITES_AT_ONCE + 2
