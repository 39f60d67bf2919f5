"""A payload is kept: drift is mended at once, and a run can be cut short anywhere."""

import asyncio
import io
import random
from typing import Any

import pytest
from tests import objects
from tests.integration.operators.cluster_version.sync.engine import Engine, eventually, manifest
from tests.objects import config_map, definition, foreign_container, pod

from quarterdeck.api.meta import (
    CONFIG_MAPS,
    CRDS,
    DEPLOYMENTS,
    SERVICE_ACCOUNTS,
    Object,
    Resource,
    foreign,
)
from quarterdeck.kube import Client, NotFound
from quarterdeck.log import configure
from quarterdeck.operators.cluster_version.sync import run_payload
from quarterdeck.payload.graph import Mode

CLUSTER_ROLES = foreign(
    "rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False
)


def cluster_role(name: str) -> Object:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    return {
        "apiVersion": CLUSTER_ROLES.api_version,
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [rule],
    }


def deployment(namespace: str) -> Object:
    template = pod("x", foreign_container())
    return objects.deployment("x", template, namespace=namespace)


def looked_for(
    admin: Client, resource: Resource[Object], name: str, namespace: str = "", **want: Any
) -> Any:
    """Looks whether the object is there and has these fields at its top."""

    async def look() -> Object | None:
        try:
            live = await admin.get(resource, name, namespace)
        except NotFound:
            return None
        return live if want.items() <= live.items() else None

    return look


@pytest.mark.usefixtures("tidy")
async def test_what_is_deleted_or_edited_is_back_without_waiting_for_a_pass(
    engine: Engine, admin: Client, namespace: str
) -> None:
    """The next pass is ten minutes away."""
    role = f"role-{namespace[-6:]}"
    payload = [
        manifest(config_map(namespace, a="1"), "0000_10_a_01.yaml"),
        manifest(config_map(namespace, "other", a="1"), "0000_10_b_01.yaml"),
        manifest(cluster_role(role), "0000_10_c_01.yaml"),
        manifest(deployment(namespace), "0000_10_d_01.yaml"),
    ]
    async with engine.keeping(*payload):
        await admin.delete(CONFIG_MAPS, "x", namespace)
        await admin.patch(CONFIG_MAPS, "other", {"data": {"a": "2"}}, namespace)
        await admin.patch(CLUSTER_ROLES, role, {"rules": None})
        scaled = {"spec": {"replicas": 3, "paused": True}}
        await admin.patch(DEPLOYMENTS, "x", scaled, namespace)
        await eventually(looked_for(admin, CONFIG_MAPS, "x", namespace, data={"a": "1"}))
        await eventually(looked_for(admin, CONFIG_MAPS, "other", namespace, data={"a": "1"}))
        rules = payload[2].object["rules"]
        await eventually(looked_for(admin, CLUSTER_ROLES, role, rules=rules))

        async def is_scaled_back() -> bool:
            live = await admin.get(DEPLOYMENTS, "x", namespace)
            return bool(live["spec"]["replicas"] == 1)

        await eventually(is_scaled_back)


@pytest.mark.parametrize("mode", [Mode.INITIALIZING, Mode.UPDATING])
@pytest.mark.usefixtures("tidy")
async def test_what_is_applied_is_kept_so_while_the_rest_is_waited_for(
    engine: Engine, admin: Client, namespace: str, mode: Mode
) -> None:
    """The Deployment never becomes ready here: a deleted account could be the reason for that."""
    role = f"role-{namespace[-6:]}"
    stuck = deployment(namespace)
    stuck["spec"]["template"]["spec"]["nodeSelector"] = {"is": "nowhere"}
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    once = {"release.openshift.io/create-only": "true"}
    create_only = config_map(namespace, "once", annotations=once, a="1")
    payload = [
        manifest(account | {"metadata": {"name": "x", "namespace": namespace}}),
        manifest(cluster_role(role), "0000_10_b_01.yaml"),
        manifest(config_map(namespace, a="1"), "0000_10_c_01.yaml"),
        manifest(create_only, "0000_10_c_02.yaml"),
        manifest(stuck, "0000_20_d_01.yaml"),
    ]
    async with engine.running(*payload, mode=mode):
        await engine.until(lambda report: report.done == 4 and report.waiting)
        was = await admin.get(SERVICE_ACCOUNTS, "x", namespace)
        await admin.delete(SERVICE_ACCOUNTS, "x", namespace)
        await admin.delete(CLUSTER_ROLES, role)
        await admin.patch(CONFIG_MAPS, "x", {"data": {"a": "2"}}, namespace)
        deleted = await admin.get(CONFIG_MAPS, "once", namespace)
        await admin.delete(CONFIG_MAPS, "once", namespace)

        async def account_is_back() -> bool:
            found = await looked_for(admin, SERVICE_ACCOUNTS, "x", namespace)()
            return bool(found and found["metadata"]["uid"] != was["metadata"]["uid"])

        await eventually(account_is_back)
        await eventually(looked_for(admin, CLUSTER_ROLES, role))
        await eventually(looked_for(admin, CONFIG_MAPS, "x", namespace, data={"a": "1"}))

        async def is_created_again() -> bool:
            found = await looked_for(admin, CONFIG_MAPS, "once", namespace)()
            return bool(found and found["metadata"]["uid"] != deleted["metadata"]["uid"])

        await eventually(is_created_again)


@pytest.mark.slow
@pytest.mark.usefixtures("tidy")
async def test_a_definition_that_is_deleted_is_back_with_its_objects(
    engine: Engine, admin: Client, namespace: str
) -> None:
    group = f"g{namespace[-6:]}.example.test"
    whale = {
        "apiVersion": f"{group}/v1",
        "kind": "Whale",
        "metadata": {"name": "x", "namespace": namespace},
    }
    whales = foreign(f"{group}/v1", "Whale", "whales", namespaced=True)
    async with engine.keeping(
        manifest(definition(group, "Whale"), "0000_10_a_01.yaml"),
        manifest(whale, "0000_10_a_02.yaml"),
    ):
        before = await admin.get(whales, "x", namespace)
        await admin.delete(CRDS, f"whales.{group}")

        async def is_new() -> bool:
            found = await looked_for(admin, whales, "x", namespace)()
            return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]

        await eventually(is_new)


async def test_passes_over_a_settled_payload_read_memory_only(
    engine: Engine, namespace: str
) -> None:
    payload = [manifest(config_map(namespace, f"c{n}"), f"0000_10_a_{n:02}.yaml") for n in range(5)]
    async with engine.cluster() as cluster:
        await run_payload(payload, Mode.INITIALIZING, cluster, engine.reports.append)
        before = engine.requests()
        for _ in range(20):
            progress = await run_payload(payload, Mode.RECONCILING, cluster, engine.reports.append)
            assert progress.completed
        assert engine.requests() == before
    assert len(engine.writes()) == 5


async def test_passes_come_by_the_clock_and_each_is_told(engine: Engine, namespace: str) -> None:
    said = io.StringIO()

    async def three_were_told() -> bool:
        return said.getvalue().count("payload kept") >= 3

    configure(stream=said)
    try:
        async with engine.keeping(manifest(config_map(namespace)), pass_after=(0.05, 0.1)):
            await eventually(three_were_told)
    finally:
        configure()
    assert engine.writes() == ["create configmaps x"]


@pytest.mark.usefixtures("tidy")
async def test_what_failed_is_tried_again(engine: Engine, admin: Client, namespace: str) -> None:
    """Its reason is gone without any change of an object that the payload is about."""
    group = f"g{namespace[-6:]}.example.test"
    whale = {
        "apiVersion": f"{group}/v1",
        "kind": "Whale",
        "metadata": {"name": "x", "namespace": namespace},
    }
    async with engine.running(manifest(whale), mode=Mode.INITIALIZING) as run:
        await engine.until(lambda report: report.faults)
        await admin.create(CRDS, definition(group, "Whale"))
        async with asyncio.timeout(60):
            assert (await run).completed


@pytest.mark.parametrize("seed", range(5))
async def test_a_run_that_is_cut_short_anywhere_ends_at_the_same_state(
    engine: Engine, admin: Client, namespace: str, seed: int
) -> None:
    """Created or changed, deleted or not: the next run finds what is there and goes on."""
    gone = {"release.openshift.io/delete": "true"}
    old = [
        manifest(config_map(namespace, f"c{n}", v="1"), f"0000_1{n}_a_01.yaml") for n in range(8)
    ]
    new = [
        manifest(
            config_map(namespace, f"c{n}", gone if n % 3 == 0 else None, v="2"),
            f"0000_1{n}_a_01.yaml",
        )
        for n in range(8)
    ]
    await engine.run(*old)
    dice = random.Random(seed)
    for _ in range(4):
        async with engine.running(*new):
            await asyncio.sleep(dice.random() * 0.1)
    assert (await engine.run(*new)).completed
    found = await admin.list(CONFIG_MAPS, namespace)
    assert {
        c["metadata"]["name"]: c.get("data")
        for c in found.items
        if c["metadata"]["name"][1:].isdigit()
    } == {f"c{n}": {"v": "2"} for n in range(8) if n % 3}
