"""Each rule of applying, on a real API server, with the writes counted there."""

import asyncio
import re
from typing import Any

import pytest
from tests.integration.operators.cluster_version.sync.engine import Engine, eventually, manifest
from tests.objects import config_map, definition
from tests.places import DOCS

from quarterdeck.api.meta import CONFIG_MAPS, CRDS, NAMESPACES, Object, foreign
from quarterdeck.kube import Client, NotFound
from quarterdeck.operators.cluster_version.sync import run_payload
from quarterdeck.payload.graph import Mode
from quarterdeck.testing.plugin import Kubectl

DOCUMENT = DOCS / "applying-a-payload.md"
CREATE_ONLY = {"release.openshift.io/create-only": "true"}
DELETE = {"release.openshift.io/delete": "true"}
RBAC = "rbac.authorization.k8s.io/v1"
ROLE_BINDINGS = foreign(RBAC, "RoleBinding", "rolebindings", namespaced=True)


def one_of_each(namespace: str) -> list[Object]:
    """An object of each common kind, as payloads have them."""

    def obj(api_version: str, kind: str, **rest: Any) -> Object:
        metadata = {"name": "x", "namespace": namespace, "creationTimestamp": None}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}

    labels = {"app": "x"}
    pod = {"containers": [{"name": "c", "image": "example.test/c:1", "args": ["-v=2"]}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    selector = {"matchLabels": labels}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}
    subject = {"kind": "ServiceAccount", "name": "x", "namespace": namespace}
    return [
        obj("v1", "ServiceAccount"),
        obj("v1", "ConfigMap", data={"a": "1"}),
        obj("v1", "Secret", stringData={"password": "not a secret"}),
        obj("v1", "Service", spec={"ports": [{"port": 80}], "selector": labels}),
        obj(RBAC, "Role", rules=[rule]),
        obj(RBAC, "RoleBinding", roleRef=ref, subjects=[subject]),
        obj(
            "apps/v1",
            "Deployment",
            spec={"replicas": 0, "selector": selector, "template": template},
        ),
        obj("apps/v1", "DaemonSet", spec={"selector": selector, "template": _nowhere(template)}),
        obj("networking.k8s.io/v1", "NetworkPolicy", spec={"podSelector": {}}),
        obj("policy/v1", "PodDisruptionBudget", spec={"maxUnavailable": 1, "selector": selector}),
    ]


def _nowhere(template: Object) -> Object:
    return {**template, "spec": template["spec"] | {"nodeSelector": {"is": "nowhere"}}}


async def test_every_common_kind_is_written_once_and_then_never_again(
    engine: Engine, namespace: str
) -> None:
    manifests = [
        manifest(obj, f"0000_10_part_{number:02}.yaml")
        for number, obj in enumerate(one_of_each(namespace))
    ]
    first = await engine.run(*manifests)
    assert first.completed
    assert first.faults == first.waiting == ()
    created = sorted(f"create {m.identity.kind.lower()}" for m in manifests)
    assert sorted(write.rstrip(" x").rstrip("s") for write in engine.writes()) == [
        one.replace("policy", "policie") for one in created
    ]
    before = engine.writes()
    for mode in Mode:
        again = await engine.run(*manifests, mode=mode)
        assert again.completed
    assert engine.writes() == before


async def test_a_changed_and_a_removed_field_are_applied(
    engine: Engine, namespace: str, admin: Client
) -> None:
    await engine.run(manifest(config_map(namespace, a="1", b="2")))
    await engine.run(manifest(config_map(namespace, a="3")))
    assert (await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"a": "3"}


async def test_what_others_added_stays(engine: Engine, namespace: str, admin: Client) -> None:
    await engine.run(manifest(config_map(namespace, a="1")))
    await admin.patch(CONFIG_MAPS, "x", {"data": {"theirs": "1", "a": "no"}}, namespace)
    await engine.run(manifest(config_map(namespace, a="1")), mode=Mode.RECONCILING)
    assert (await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"a": "1", "theirs": "1"}


async def test_create_only_is_created_and_survives_a_hundred_reconciles_and_an_update(
    engine: Engine, namespace: str, admin: Client
) -> None:
    first = manifest(config_map(namespace, annotations=CREATE_ONLY, level="Normal"))
    await engine.run(first)
    await admin.patch(CONFIG_MAPS, "x", {"data": {"level": "Debug"}}, namespace)
    async with engine.cluster() as cluster:
        for _ in range(100):
            await run_payload([first], Mode.RECONCILING, cluster, engine.reports.append)
    await engine.run(manifest(config_map(namespace, annotations=CREATE_ONLY, level="Trace")))
    assert (await admin.get(CONFIG_MAPS, "x", namespace))["data"] == {"level": "Debug"}
    assert engine.writes() == ["create configmaps x"]


async def test_create_only_that_was_deleted_comes_back(
    engine: Engine, namespace: str, admin: Client
) -> None:
    only = manifest(config_map(namespace, annotations=CREATE_ONLY, level="Normal"))
    async with engine.keeping(only):
        await admin.delete(CONFIG_MAPS, "x", namespace)
        await eventually(lambda: _there(admin, namespace))


async def _there(admin: Client, namespace: str, name: str = "x") -> Object | None:
    try:
        return await admin.get(CONFIG_MAPS, name, namespace)
    except NotFound:
        return None


@pytest.mark.parametrize("mode", [Mode.INITIALIZING, Mode.RECONCILING])
async def test_delete_does_nothing_unless_updating(
    engine: Engine, namespace: str, admin: Client, mode: Mode
) -> None:
    await admin.create(CONFIG_MAPS, config_map(namespace))
    progress = await engine.run(manifest(config_map(namespace, annotations=DELETE)), mode=mode)
    assert progress.completed
    assert engine.writes() == []


async def test_delete_deletes_while_updating(engine: Engine, namespace: str, admin: Client) -> None:
    await admin.create(CONFIG_MAPS, config_map(namespace))
    gone = manifest(config_map(namespace, annotations=DELETE))
    for _ in range(2):
        assert (await engine.run(gone)).completed
    assert engine.writes() == ["delete configmaps x"]
    assert await _there(admin, namespace) is None


async def test_delete_waits_until_the_object_is_gone(
    engine: Engine, namespace: str, admin: Client
) -> None:
    held = config_map(namespace)
    held["metadata"]["finalizers"] = ["example.test/hold"]
    await admin.create(CONFIG_MAPS, held)
    gone = manifest(config_map(namespace, annotations=DELETE))
    later = manifest(config_map(namespace, "later"), "0000_20_part_01.yaml")
    async with engine.running(gone, later) as run:
        progress = await engine.until(lambda report: report.waiting)
        assert progress.waiting[0].reason == "ObjectTerminating"
        assert "example.test/hold" in progress.waiting[0].message
        assert progress.run_level == "0000_10"
        assert await _there(admin, namespace, "later") is None
        await admin.patch(CONFIG_MAPS, "x", {"metadata": {"finalizers": None}}, namespace)
        async with asyncio.timeout(60):
            assert (await run).completed


async def test_any_other_value_of_delete_is_a_fault(
    engine: Engine, namespace: str, admin: Client
) -> None:
    await admin.create(CONFIG_MAPS, config_map(namespace))
    wrong = manifest(config_map(namespace, annotations={"release.openshift.io/delete": "yes"}))
    progress = await engine.run(wrong, mode=Mode.RECONCILING)
    assert [fault.reason for fault in progress.faults] == ["DeleteAnnotationInvalid"]
    assert "'yes'" in progress.faults[0].message
    assert engine.writes() == []


async def test_a_binding_to_another_role_is_made_anew(
    engine: Engine, namespace: str, admin: Client
) -> None:
    for role in ("one", "other"):
        binding: Object = {
            "apiVersion": RBAC,
            "kind": "RoleBinding",
            "metadata": {"name": "x", "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": namespace}],
        }
        await engine.run(manifest(binding))
        live = await admin.get(ROLE_BINDINGS, "x", namespace)
        assert live["roleRef"]["name"] == role
    assert [write.split()[0] for write in engine.writes()] == ["create", "delete", "create"]


async def test_all_faults_are_reported_together_and_the_others_are_applied(
    engine: Engine, namespace: str, admin: Client
) -> None:
    good = manifest(config_map(namespace), "0000_10_good_01.yaml")
    no_kind = manifest(
        {"apiVersion": "example.test/v1", "kind": "Whale", "metadata": {"name": "x"}},
        "0000_10_sea_01.yaml",
    )
    no_namespace = manifest(config_map("there-is-none"), "0000_10_lost_01.yaml")
    unsaid = manifest(config_map(""), "0000_10_unsaid_01.yaml")
    invalid = manifest(config_map(namespace, "NOT_A_NAME"), "0000_10_wrong_01.yaml")
    after = manifest(config_map(namespace, "after"), "0000_10_wrong_02.yaml")
    progress = await engine.run(
        no_kind, no_namespace, unsaid, invalid, after, good, mode=Mode.RECONCILING
    )
    assert [fault.reason for fault in progress.faults] == [
        "KindUnknown",
        "NamespaceNotFound",
        "NamespaceMissing",
        "Invalid",
    ]
    assert progress.faults[0].manifest == "0000_10_sea_01.yaml: Whale.example.test/x"
    assert "no Whale in example.test/v1; install its definition" in progress.faults[0].message
    assert (progress.done, progress.total, progress.completed) == (2, 6, False)
    assert await _there(admin, namespace)
    assert await _there(admin, namespace, "after")


@pytest.mark.usefixtures("tidy")
async def test_a_new_cluster_gets_definition_namespace_and_objects_in_any_order(
    engine: Engine, namespace: str
) -> None:
    """Nothing of it is a fault: what an object needs is in the same payload."""
    made = f"{namespace[:40]}-new"
    definition = whales(group_for(namespace))
    whale = {
        "apiVersion": f"{group_for(namespace)}/v1",
        "kind": "Whale",
        "metadata": {"name": "x", "namespace": made},
        "spec": {"song": "low"},
    }
    progress = await engine.run(
        manifest(whale, "0000_10_a_01.yaml"),
        manifest(config_map(made), "0000_10_b_01.yaml"),
        manifest(definition, "0000_20_c_01.yaml"),
        manifest(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": made}},
            "0000_30_d_01.yaml",
        ),
        mode=Mode.INITIALIZING,
    )
    assert progress.completed
    assert not any(report.faults for report in engine.reports)
    assert len(engine.writes()) == 4


def group_for(namespace: str) -> str:
    """An API group of the test's own."""
    return f"g{namespace[-6:]}.example.test"


def whales(group: str, *versions: str) -> Object:
    """With the empty status that some generators write into definitions."""
    status = {"acceptedNames": {"kind": "", "plural": ""}, "conditions": []}
    return definition(group, "Whale", *versions) | {"status": status}


@pytest.mark.usefixtures("tidy")
async def test_a_definition_is_written_once_and_waited_for(engine: Engine, namespace: str) -> None:
    definition = manifest(whales(group_for(namespace)))
    for mode in (Mode.UPDATING, Mode.RECONCILING):
        assert (await engine.run(definition, mode=mode)).completed
    assert len(engine.writes()) == 1


@pytest.mark.usefixtures("tidy")
async def test_a_definition_that_somebody_else_installed_is_left_alone(
    engine: Engine, namespace: str, admin: Client
) -> None:
    group = group_for(namespace)
    theirs = whales(group)
    theirs["spec"]["names"]["shortNames"] = ["wh"]
    del theirs["status"]
    await admin.create(CRDS, theirs, field_manager="their-operator")
    progress = await engine.run(manifest(whales(group)))
    assert progress.completed
    assert [note.reason for note in progress.notes] == ["ForeignDefinition"]
    assert "their-operator" in progress.notes[0].message
    newer = await engine.run(manifest(whales(group, "v1", "v2")), mode=Mode.RECONCILING)
    assert [fault.reason for fault in newer.faults] == ["ForeignDefinition"]
    assert "does not serve v2" in newer.faults[0].message
    assert engine.writes() == []


@pytest.mark.usefixtures("tidy")
async def test_a_definition_can_be_handed_over(
    engine: Engine, kubectl: Kubectl, namespace: str, admin: Client
) -> None:
    """By the command in docs/applying-a-payload.md."""
    (command,) = re.findall(r"^    kubectl (annotate .*)$", DOCUMENT.read_text(), re.MULTILINE)
    definition = whales(group := group_for(namespace))
    await admin.create(CRDS, definition, field_manager="their-operator")
    definition["spec"]["names"]["shortNames"] = ["wh"]
    assert (await engine.run(manifest(definition))).notes
    await asyncio.to_thread(kubectl, *command.replace("NAME", f"whales.{group}").split())
    assert not (await engine.run(manifest(definition))).notes
    live = await admin.get(CRDS, f"whales.{group}")
    assert live["spec"]["names"]["shortNames"] == ["wh"]


@pytest.mark.usefixtures("tidy")
async def test_a_namespace_that_is_going_is_made_anew_when_it_is_gone(
    engine: Engine, namespace: str, admin: Client
) -> None:
    name = f"{namespace[:40]}-again"
    wanted = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    held = {**wanted, "metadata": {"name": name, "finalizers": ["example.test/hold"]}}
    first = await admin.create(NAMESPACES, held)
    await admin.delete(NAMESPACES, name)
    async with engine.running(manifest(wanted)) as run:
        await engine.until(lambda report: report.waiting)
        await admin.patch(NAMESPACES, name, {"metadata": {"finalizers": None}})
        async with asyncio.timeout(60):
            assert (await run).completed
    assert (await admin.get(NAMESPACES, name))["metadata"]["uid"] != first["metadata"]["uid"]
