"""What has to be there before a ClusterServiceVersion is installed; what is created for it."""

from typing import Any

import msgspec
import pytest
from tests.unit.operators.subscriptions.catalogs import csv

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion
from quarterdeck.operators.subscriptions.groups import Target
from quarterdeck.operators.subscriptions.install.desired import desired_accounts, desired_roles
from quarterdeck.operators.subscriptions.install.needs import (
    MAX_FOREIGN,
    MAX_NAMESPACE,
    too_many,
)
from quarterdeck.operators.subscriptions.install.requirements import missing_requirements
from quarterdeck.versions import parse_version


def typed(**spec: Any) -> ClusterServiceVersion:
    made = csv("a", "1.0.0", **spec)
    made["metadata"] |= {"namespace": "ns", "uid": "u"}
    return msgspec.convert(made, ClusterServiceVersion)


def live(version: str = "v1", established: str = "True") -> Object:
    return {
        "metadata": {"generation": 1},
        "spec": {"versions": [{"name": version, "served": True}]},
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


NEEDED = {"name": "things.example.com", "version": "v1", "kind": "Thing"}


@pytest.mark.parametrize(
    ("found", "missing"),
    [
        (None, ["the required CustomResourceDefinition things.example.com does not exist"]),
        (live(), []),
        (
            live("v2"),
            ["the required CustomResourceDefinition things.example.com does not serve v1"],
        ),
        (
            live(established="False"),
            ["the required CustomResourceDefinition things.example.com is not established"],
        ),
    ],
)
def test_definitions(found: Object | None, missing: list[str]) -> None:
    needs = typed(customresourcedefinitions={"required": [NEEDED]})
    assert missing_requirements(needs, lambda _name: found, None) == missing


@pytest.mark.parametrize(
    ("wanted", "fits"), [("1.36.0", True), ("v1.36.4", True), ("1.37.0", False), ("soon", True)]
)
def test_kubernetes_version(wanted: str, fits: bool) -> None:
    needs = typed(minKubeVersion=wanted)
    found = missing_requirements(needs, lambda _name: None, parse_version("1.36.4"))
    assert (found == []) is fits


def test_rights_in_each_target_namespace_or_in_the_whole_cluster() -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    permissions = [{"serviceAccountName": name, "rules": rules} for name in ("x", "default", "x")]
    install = {"deployments": [], "permissions": permissions, "clusterPermissions": permissions[:1]}
    made = typed(install={"strategy": "deployment", "spec": install})
    assert [one["metadata"]["name"] for one in desired_accounts(made)] == ["x"]
    local = desired_roles(made, Target(namespace="ns", namespaces=("ns", "other")))
    counts = [len(part) for part in (local.roles, local.bindings, local.cluster_roles)]
    assert counts == [4, 4, 1]
    owned = ["ownerReferences" in one["metadata"] for one in local.roles]
    assert owned == [True, True, False, False]
    everywhere = desired_roles(made, Target(namespace="ns", namespaces=()))
    assert (len(everywhere.roles), len(everywhere.cluster_roles)) == (0, 2)
    assert all("ownerReferences" not in one["metadata"] for one in everywhere.cluster_roles)


def test_a_namespace_watches_no_more_definitions_than_its_share() -> None:
    """Each watch is a connection; what a version watches already costs nothing."""

    def names(start: int, count: int) -> frozenset[Key]:
        return frozenset(Key("", f"x{number}.example.com") for number in range(start, count))

    me, other = Key("ns", "me"), Key("other", "v")
    assert too_many(me, names(0, MAX_FOREIGN), {}) == ""
    assert "more than 100 definitions" in too_many(me, names(0, MAX_FOREIGN + 1), {})
    elsewhere = {other: names(1000, 1000 + MAX_NAMESPACE)}
    assert too_many(me, names(0, MAX_FOREIGN), elsewhere) == ""
    here = {Key("ns", str(n)): names(n * 100, n * 100 + 100) for n in range(MAX_NAMESPACE // 100)}
    assert "in this namespace need more than 500" in too_many(me, names(600, 601), here)
    assert too_many(me, names(0, 10), here) == ""
    assert too_many(Key("ns", "0"), names(0, 100), here) == ""
