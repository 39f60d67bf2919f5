"""A release that would take the operator's own rights is refused where it would, and told."""

import pytest
from tests.integration.operators.cluster_version.sync.engine import Engine, manifest
from tests.objects import config_map

from quarterdeck.api.meta import CONFIG_MAPS, CRDS, Object, foreign
from quarterdeck.kube import Client
from quarterdeck.localcluster import ControlPlane

RBAC = "rbac.authorization.k8s.io"
BINDINGS = foreign(f"{RBAC}/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
ROLES = foreign(f"{RBAC}/v1", "ClusterRole", "clusterroles", namespaced=False)
EVERYTHING = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]


def binding(name: str, user: str, role: str = "cluster-admin", **metadata: object) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, **metadata},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }


def role(name: str, *rules: Object) -> Object:
    meta = {"name": name}
    kind = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole"}
    return {**kind, "metadata": meta, "rules": list(rules)}


@pytest.fixture
async def bound(
    control_plane: ControlPlane, crds: list[str], admin: Client, namespace: str, tidy: None
) -> Engine:
    """An engine that has its rights by one binding of its own, to a role of its own."""
    engine = Engine(control_plane, namespace, groups=[])
    await admin.create(ROLES, role(engine.user, *EVERYTHING))
    await admin.create(BINDINGS, binding(engine.user, engine.user, engine.user))
    return engine


async def refused_by(engine: Engine, obj: Object, namespace: str) -> str:
    """Why an object is not applied, while what does not depend on it is."""
    other = manifest(config_map(namespace), "0000_10_other_01.yaml")
    async with engine.running(manifest(obj), other):
        await engine.until(lambda report: report.faults and report.done == 1)
        (fault,) = engine.latest.faults
        assert fault.reason == "OwnRightsLost"
        return fault.message


async def test_the_binding_by_which_it_has_its_rights_is_not_bound_to_another_role(
    bound: Engine, admin: Client, namespace: str
) -> None:
    user = bound.user
    message = await refused_by(bound, binding(user, user, "view"), namespace)
    assert f"the rights of ClusterRole {user} by this binding alone" in message
    live = await admin.get(BINDINGS, user)
    assert live["roleRef"]["name"] == user
    assert await admin.get(CONFIG_MAPS, "x", namespace)


async def test_the_binding_is_not_deleted_and_stays_bound_to_it(
    bound: Engine, admin: Client, namespace: str
) -> None:
    user = bound.user
    marks = {"release.openshift.io/delete": "true"}
    await refused_by(bound, binding(user, user, user, annotations=marks), namespace)
    await refused_by(bound, binding(user, "somebody-else", user), namespace)
    await refused_by(bound, role(user, EVERYTHING[1]), namespace)
    assert (await admin.get(BINDINGS, user))["subjects"][0]["name"] == user


async def test_with_another_binding_to_the_same_role_it_is_made_anew(
    bound: Engine, admin: Client, namespace: str
) -> None:
    user = bound.user
    progress = await bound.run(
        manifest(binding(f"{user}-new", user), "0000_10_part_01.yaml"),
        manifest(binding(user, user, "view"), "0000_10_part_02.yaml"),
    )
    assert progress.completed
    assert (await admin.get(BINDINGS, user))["roleRef"]["name"] == "view"


async def test_of_two_bindings_that_stand_in_for_each_other_one_stays(
    bound: Engine, admin: Client, namespace: str
) -> None:
    """Both are deleted at the same time, and each was there when the other one was looked at."""
    user = bound.user
    marks = {"release.openshift.io/delete": "true"}
    names = [user, *(f"{user}-{number}" for number in range(3))]
    for name in names[1:]:
        await admin.create(BINDINGS, binding(name, user, user))
    payload = [
        manifest(binding(name, user, user, annotations=marks), f"0000_10_part{number}_01.yaml")
        for number, name in enumerate(names)
    ]
    async with bound.running(*payload):
        await bound.until(lambda report: report.faults and report.done == len(names) - 1)
    assert [fault.reason for fault in bound.latest.faults] == ["OwnRightsLost"]
    left = [one["metadata"]["name"] for one in (await admin.list(BINDINGS)).items]
    assert len(set(left) & set(names)) == 1


async def test_its_role_is_not_turned_into_an_aggregated_one(
    bound: Engine, admin: Client, namespace: str
) -> None:
    """The controller manager would empty it."""
    user = bound.user
    selectors = [{"matchLabels": {"selects": "nothing"}}]
    empty = role(user) | {"aggregationRule": {"clusterRoleSelectors": selectors}}
    del empty["rules"]
    await refused_by(bound, empty, namespace)
    assert (await admin.get(ROLES, user))["rules"] == EVERYTHING


async def test_the_definition_of_cluster_version_is_not_deleted(
    engine: Engine, admin: Client, namespace: str
) -> None:
    name = "clusterversions.config.openshift.io"
    live = await admin.get(CRDS, name)
    marks = {"release.openshift.io/delete": "true"}
    gone = {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": name, "annotations": marks},
    }
    other = manifest(config_map(namespace), "0000_10_other_01.yaml")
    async with engine.running(manifest(gone), other):
        await engine.until(lambda report: report.faults and report.done == 1)
    (fault,) = engine.latest.faults
    assert fault.reason == "OwnOperatorStopped"
    assert (await admin.get(CRDS, name))["metadata"]["uid"] == live["metadata"]["uid"]
