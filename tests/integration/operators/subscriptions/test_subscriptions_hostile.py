"""Bundles, catalogs, plans and objects that somebody made to get at what is not theirs."""

import base64
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.operators.subscriptions.bundles import (
    bundle,
    definition,
    deployment,
    service,
)
from tests.integration.operators.subscriptions.conftest import (
    HOME,
    LIMIT,
    Cluster,
    publish,
    write_catalog,
)

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.namespaces import create_namespace, delete_namespace
from quarterdeck.testing.waiting import eventually

OWN = "quarterdeck.dev/"


@pytest.fixture
def other(control_plane: ControlPlane, cluster: Cluster) -> Iterator[Cluster]:
    """The namespace of another user."""
    name = f"{cluster.namespace}-other"
    create_namespace(control_plane.requests(), name)
    yield Cluster(control_plane, name)
    delete_namespace(control_plane, name)


def test_a_bundle_cannot_say_that_it_replaces_another_operator(
    cluster: Cluster, catalog_root: Path
) -> None:
    """Nor whose Subscription it has: labels and annotations of ours are dropped from bundles."""
    claims = {f"{OWN}replaces": "engine.v1.0.0", f"{OWN}subscription": "engine", "theirs": "1"}
    thief = bundle(
        "9.0.0",
        package="thief",
        account="thief",
        metadata={"annotations": claims, "labels": {f"{OWN}csv": "engine.v1.0.0"}},
        deployments=[deployment("thief") | {"label": {f"{OWN}csv": "engine.v1.0.0"}}],
        services=(service("thief", labels={f"{OWN}csv": "engine.v1.0.0", "theirs": "1"}),),
    )
    publish(cluster, catalog_root, bundle("1.0.0"), thief)
    cluster.subscribe("engine")
    cluster.wait_phase("engine.v1.0.0")
    uid = cluster.get("deployment", "engine")["metadata"]["uid"]
    cluster.subscribe("thief")
    cluster.wait_phase("thief.v9.0.0")
    annotations = cluster.get("csv", "thief.v9.0.0")["metadata"]["annotations"]
    del annotations[f"{OWN}services"]
    assert annotations == {"theirs": "1", f"{OWN}subscription": "thief"}
    for kind in ("deployment", "service"):
        assert cluster.get(kind, "thief")["metadata"]["labels"][f"{OWN}csv"] == "thief.v9.0.0"
    assert cluster.get("service", "thief")["metadata"]["labels"]["theirs"] == "1"
    cluster.delete("subscription", "thief")
    cluster.delete("csv", "thief.v9.0.0")
    eventually(lambda: cluster.find("deployment", "thief") is None, "the thief is gone", LIMIT)
    assert cluster.phase("engine.v1.0.0") == "Succeeded"
    assert cluster.get("deployment", "engine")["metadata"]["uid"] == uid


def test_a_package_of_the_same_name_does_not_get_the_definition(
    cluster: Cluster, other: Cluster, catalog_root: Path
) -> None:
    """A user's own catalog can have any package, in any version; the one in use is not changed."""
    group = f"{cluster.namespace}.example.com"
    ours = definition(group)
    publish(cluster, catalog_root, bundle("1.0.0", definitions=(ours,)))
    cluster.subscribe("engine")
    cluster.wait_phase("engine.v1.0.0")
    theirs = definition(group)
    theirs["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "stolen"
    publish(other, catalog_root, bundle("99.0.0", definitions=(theirs,)))
    other.subscribe("engine")
    found = other.wait_condition("engine", "InstallPlanFailed", "is from the CatalogSource")
    assert f"{cluster.namespace}/engine.v1.0.0 uses it" in found["message"]
    assert other.list("csv") == []
    assert "stolen" not in str(cluster.get("customresourcedefinition", f"engines.{group}"))


def test_a_definition_is_not_free_when_its_operator_is_gone(
    cluster: Cluster, other: Cluster, home: Cluster, catalog_root: Path
) -> None:
    """Its objects are still there. A catalog of the cluster wins, with any version."""
    made = definition(f"{cluster.namespace}.example.com")
    name = made["metadata"]["name"]
    publish(cluster, catalog_root, bundle("2.0.0", definitions=(made,)))
    cluster.subscribe("engine")
    cluster.wait_phase("engine.v2.0.0")
    cluster.delete("subscription", "engine")
    cluster.delete("csv", "engine.v2.0.0")
    eventually(lambda: cluster.list("csv") == [], "the version is gone", LIMIT)
    publish(other, catalog_root, bundle("99.0.0", definitions=(made,)))
    other.subscribe("engine")
    other.wait_condition("engine", "InstallPlanFailed", "is from the CatalogSource")
    other.delete("subscription", "engine")

    def recorded() -> str:
        live = cluster.get("customresourcedefinition", name)
        return str(live["metadata"]["annotations"][f"{OWN}catalog"])

    assert recorded() == f"{cluster.namespace}/catalog"
    write_catalog(catalog_root / "home", [bundle("1.0.0", definitions=(made,))])
    home.catalog_source("home")
    other.subscribe("engine", name="again", sourceNamespace=HOME)
    other.wait_phase("engine.v1.0.0")
    assert recorded() == f"{HOME}/catalog"


def test_a_version_that_a_user_wrote_replaces_nothing(cluster: Cluster, catalog_root: Path) -> None:
    """Neither is the other one deleted, nor are its objects taken over."""
    publish(cluster, catalog_root, bundle("1.0.0"))
    cluster.subscribe("engine")
    cluster.wait_phase("engine.v1.0.0")
    uid = cluster.get("deployment", "engine")["metadata"]["uid"]
    claims = {f"{OWN}replaces": "engine.v1.0.0", f"{OWN}subscription": "engine"}
    cases: list[tuple[str, list[Object], str]] = [
        ("empty", [], "Succeeded"),
        ("greedy", [deployment("engine")], "Failed"),
        ("double", [deployment("double"), deployment("double")], "Failed"),
    ]
    for name, deployments, phase in cases:
        made = bundle(name=name, account=name, deployments=deployments)
        cluster.apply({**made.objects[0], "metadata": {"name": name, "annotations": claims}})
        cluster.wait_phase(name, phase)
    assert cluster.status("csv", "greedy")["reason"] == "ComponentConflict"
    assert cluster.status("csv", "double")["reason"] == "InvalidInstallStrategy"
    assert cluster.find("deployment", "double") is None
    cluster.subscribe("engine", config=[{"env": [{"name": "ARGS", "value": "-v=4"}]}])
    eventually(lambda: "ARGS" in cluster.env("engine"), "the first one still works", LIMIT)
    cluster.wait_phase("engine.v1.0.0")
    assert cluster.get("deployment", "engine")["metadata"]["uid"] == uid


def test_the_same_operator_in_two_namespaces(
    cluster: Cluster, other: Cluster, catalog_root: Path
) -> None:
    """Each has its own roles in the cluster, and a deletion of one leaves the other."""
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    for one in (cluster, other):
        publish(one, catalog_root, bundle("1.0.0", cluster_rules=rules))
        one.subscribe("engine")
    for one in (cluster, other):
        one.wait_phase("engine.v1.0.0")

    def subjects(of: Cluster) -> list[str]:
        owned = f"{OWN}csv-namespace={of.namespace}"
        bindings = of.list("clusterrolebinding", owned)
        return [one["subjects"][0]["namespace"] for one in bindings]

    assert subjects(cluster) == [cluster.namespace]
    assert subjects(other) == [other.namespace]
    other.delete("subscription", "engine")
    other.delete("csv", "engine.v1.0.0")
    eventually(lambda: subjects(other) == [], "its rights are gone", LIMIT)
    assert subjects(cluster) == [cluster.namespace]


@pytest.mark.parametrize("kind", ["deployment", "serviceaccount", "service"])
def test_an_object_of_somebody_else_is_not_taken_over(
    cluster: Cluster, catalog_root: Path, kind: str
) -> None:
    """Neither without our label, nor with it; it stays as it is, and no version runs."""
    publish(cluster, catalog_root, bundle("1.0.0", services=(service("engine"),)))
    labels = {"quarterdeck.dev/managed": "subscriptions", f"{OWN}csv": "engine.v1.0.0"}
    made = cluster.apply(foreign(kind, labels if kind != "serviceaccount" else {}))
    cluster.subscribe("engine")
    if kind == "service":
        cluster.wait_condition("engine", "InstallPlanFailed", "Service engine belongs to")
        assert cluster.list("csv") == []
    else:
        cluster.wait_phase("engine.v1.0.0", "Failed")
    live = cluster.get(kind, "engine")
    assert live.get("spec") == made.get("spec")
    assert live["metadata"].get("annotations", {}).get(f"{OWN}csv") is None
    cluster.delete("subscription", "engine")
    if kind != "service":
        cluster.delete("csv", "engine.v1.0.0")
        eventually(lambda: cluster.list("csv") == [], "the version is gone", LIMIT)
    assert cluster.get(kind, "engine")["metadata"]["uid"] == made["metadata"]["uid"]


def foreign(kind: str, labels: dict[str, str]) -> Object:
    name = {"name": "engine", "labels": labels}
    match kind:
        case "serviceaccount":
            return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": name}
        case "service":
            return service("engine", labels=labels)
        case _:
            spec: Any = deployment("engine")["spec"]
            return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": name, "spec": spec}


def test_a_plan_that_a_user_wrote_installs_nothing_else(
    cluster: Cluster, other: Cluster, catalog_root: Path
) -> None:
    """A catalog of another namespace, another package of the same catalog, another's version."""
    publish(other, catalog_root, bundle("1.0.0", package="private"))
    second = bundle("2.0.0", package="second", deployments=[deployment("second")])
    publish(cluster, catalog_root, bundle("1.0.0"), second)
    subscription = cluster.subscribe("engine", installPlanApproval="Manual")
    owner = {
        "apiVersion": subscription["apiVersion"],
        "kind": "Subscription",
        "name": "engine",
        "uid": subscription["metadata"]["uid"],
        "controller": True,
    }
    cases = {
        "foreign": (other.namespace, "private.v1.0.0", "may not use the CatalogSource"),
        "package": (cluster.namespace, "second.v2.0.0", "does not have second.v2.0.0"),
    }
    cluster.subscribe("second")
    cluster.wait_phase("second.v2.0.0")
    cluster.wait_condition("engine", "InstallPlanPending")
    for name, (namespace, csv, words) in cases.items():
        spec = {
            "approval": "Automatic",
            "approved": True,
            "clusterServiceVersionNames": [csv],
            "source": "catalog",
            "sourceNamespace": namespace,
        }
        metadata = {"name": name, "ownerReferences": [owner]}
        api = {"apiVersion": "operators.coreos.com/v1alpha1", "kind": "InstallPlan"}
        cluster.apply({**api, "metadata": metadata, "spec": spec})

        def refused(name: str = name, words: str = words) -> bool:
            # The Subscription may delete it before: it is not the plan for its next step.
            found = cluster.find("installplan", name)
            return found is None or words in str(found.get("status"))

        eventually(refused, f"the plan {name} is refused", LIMIT)
    plan = cluster.status("subscription", "engine")["installPlanRef"]["name"]
    cluster.patch("installplan", plan, {"spec": {"approved": True, "replaces": "second.v2.0.0"}})
    cluster.wait_condition("engine", "InstallPlanFailed", "it belongs to second")
    assert [one["metadata"]["name"] for one in cluster.list("csv")] == ["second.v2.0.0"]


def test_a_subscription_cannot_use_the_catalog_of_another_namespace(
    cluster: Cluster, other: Cluster, catalog_root: Path
) -> None:
    publish(other, catalog_root, bundle("1.0.0", package="private"))
    cluster.subscribe("private", sourceNamespace=other.namespace)
    cluster.wait_condition("private", "ResolutionFailed", "CatalogSourceMissing")


def test_a_bomb_in_a_config_map(cluster: Cluster) -> None:
    """Many files that are small only while they are compressed: refused, with the file."""
    bomb = base64.b64encode(gzip.compress(b" " * (15 << 20))).decode()
    data = {f"{number}.yaml.gz": bomb for number in range(6)}
    api = "operators.coreos.com/v1alpha1"
    named: Object = {"metadata": {"name": "catalog"}}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "binaryData": data, **named})
    spec = {"sourceType": "configmap", "configMap": "catalog"}
    cluster.apply({"apiVersion": api, "kind": "CatalogSource", "spec": spec, **named})

    def message() -> str:
        return str(cluster.status("catalogsource", "catalog").get("message"))

    eventually(lambda: "catalog/4.yaml.gz: has more than 4 MiB" in message(), "refused", LIMIT)
