"""Which kinds the server has, from its own list and from definitions."""

import json

from quarterdeck.kube.kinds import (
    GroupVersionKind,
    kinds_of_definition,
    parse_discovery,
)

ALL = ["create", "delete", "get", "list", "patch", "update", "watch"]


def resource(plural: str, kind: str, scope: str, verbs: list[str]) -> object:
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": kind},
        "scope": scope,
        "verbs": verbs,
        "subresources": [{"subresource": "status"}],
    }


def test_kinds_are_found_with_their_plural_and_scope() -> None:
    answer = {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {
                "metadata": {"creationTimestamp": None},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            resource("configmaps", "ConfigMap", "Namespaced", ALL),
                            resource("namespaces", "Namespace", "Cluster", ALL),
                            resource("bindings", "Binding", "Namespaced", ["create"]),
                        ],
                    }
                ],
            },
            {
                "metadata": {"name": "apps"},
                "versions": [
                    {
                        "version": "v1",
                        "freshness": "Current",
                        "resources": [resource("deployments", "Deployment", "Namespaced", ALL)],
                    }
                ],
            },
        ],
    }
    kinds = parse_discovery(json.dumps(answer).encode())
    assert {gvk: (it.plural, it.namespaced) for gvk, it in kinds.items()} == {
        GroupVersionKind("", "v1", "ConfigMap"): ("configmaps", True),
        GroupVersionKind("", "v1", "Namespace"): ("namespaces", False),
        GroupVersionKind("apps", "v1", "Deployment"): ("deployments", True),
    }
    assert kinds[GroupVersionKind("apps", "v1", "Deployment")].api_version == "apps/v1"


def test_a_group_whose_server_is_away_has_no_kinds() -> None:
    answer = {"items": [{"metadata": {"name": "x"}, "versions": [{"version": "v1"}]}]}
    assert parse_discovery(json.dumps(answer).encode()) == {}
    assert parse_discovery(b'{"items": null}') == {}


def test_a_definition_brings_a_kind_for_each_version_that_is_served() -> None:
    definition = {
        "spec": {
            "group": "example.test",
            "names": {"kind": "Whale", "plural": "whales"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True}, {"name": "v0", "served": False}],
        }
    }
    (gvk,) = (kinds := kinds_of_definition(definition))
    assert gvk == GroupVersionKind("example.test", "v1", "Whale")
    assert (kinds[gvk].plural, kinds[gvk].namespaced) == ("whales", False)


def test_the_kind_of_an_object_is_read_from_it() -> None:
    obj = {"apiVersion": "apps/v1", "kind": "Deployment"}
    assert GroupVersionKind.of(obj) == ("apps", "v1", "Deployment")
    assert GroupVersionKind.of({"apiVersion": "v1", "kind": "Pod"}) == ("", "v1", "Pod")
