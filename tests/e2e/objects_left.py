"""All objects of a cluster, to compare it before an installation and after its removal."""

import json

from tests.e2e.cluster import RealCluster

_COME_AND_GO = frozenset({"events", "events.events.k8s.io", "endpointslices.discovery.k8s.io"})


def all_objects(cluster: RealCluster) -> set[str]:
    """Every object of every kind that can be listed, by kind, namespace and name."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "--output=name").split()
    wanted = ",".join(sorted(set(kinds) - _COME_AND_GO))
    listed = json.loads(cluster.kubectl("get", wanted, "--all-namespaces", "--output=json"))
    return {
        f"{one['kind']} {one['metadata'].get('namespace', '')}/{one['metadata']['name']}"
        for one in listed["items"]
    }
