"""Keys of the API server's store, and the paths of their objects."""

import pytest

from quarterdeck.testing.stored import Served, StoredObject

KINDS = Served(
    cluster_scoped={
        "nodes": "/api/v1/nodes",
        "clusterroles": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "config.openshift.io/ingresses": "/apis/config.openshift.io/v1/ingresses",
        "ingresses": "/apis/config.openshift.io/v1/ingresses",
    },
    namespaced={
        "pods": "/api/v1/namespaces/{}/pods",
        "services": "/api/v1/namespaces/{}/services",
        "ingresses": "/apis/networking.k8s.io/v1/namespaces/{}/ingresses",
        "example.com/notes": "/apis/example.com/v1/namespaces/{}/notes",
    },
)


@pytest.mark.parametrize(
    ("key", "collection"),
    [
        ("clusterroles/x", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        ("minions/x", "/api/v1/nodes"),
        ("pods/here/x", "/api/v1/namespaces/here/pods"),
        ("services/specs/here/x", "/api/v1/namespaces/here/services"),
        ("ingress/here/x", "/apis/networking.k8s.io/v1/namespaces/here/ingresses"),
        ("config.openshift.io/ingresses/x", "/apis/config.openshift.io/v1/ingresses"),
        ("example.com/notes/here/x", "/apis/example.com/v1/namespaces/here/notes"),
        ("pods/clusterroles/x", "/api/v1/namespaces/clusterroles/pods"),
    ],
)
def test_the_path_of_a_key(key: str, collection: str) -> None:
    assert KINDS.find(key) == StoredObject(collection, "x")


@pytest.mark.parametrize(
    "key", ["ranges/serviceips", "example.com/gone/here/x", "clusterroles", "pods/x", "a/b/c/d/e"]
)
def test_what_is_no_object_of_a_served_kind(key: str) -> None:
    assert KINDS.find(key) is None
