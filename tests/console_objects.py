"""A cluster to look at: what tests and pictures of the console show."""

from typing import Any

from tests.objects import CLUSTER_OPERATOR, condition

from quarterdeck.api.meta import Object
from quarterdeck.status.staleness_marks import verdict_message

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"


def conditions(
    available: str = "True",
    progressing: str = "False",
    degraded: str = "False",
    message: str = "",
    **more: str,
) -> list[Object]:
    """The conditions that every operator has."""
    return [
        condition("Available", available, message, **more),
        condition("Progressing", progressing, message if progressing == "True" else "", **more),
        condition("Degraded", degraded, message if degraded == "True" else "", **more),
        condition("Upgradeable", "True", "", **more),
    ]


def operator(name: str, found: list[Object], version: str = "0.2.0", **status: Any) -> Object:
    """A ClusterOperator with this status."""
    told = {"conditions": found, "versions": [{"name": "operator", "version": version}], **status}
    return {**CLUSTER_OPERATOR, "metadata": {"name": name}, "spec": {}, "status": told}


def stale(name: str) -> Object:
    """An operator with the checker's verdict."""
    since = {"lastTransitionTime": "2026-11-17T22:00:00Z"}
    marked = [
        one | {"status": "Unknown", "message": verdict_message(one["message"], one["status"], 1200)}
        for one in conditions(message=f"{name} is available at 0.1.0", **since)
    ]
    return operator(name, marked, "0.1.0")


def cluster_operators() -> list[Object]:
    """Operators in all states."""
    off = [
        *conditions(message="all is well"),
        condition("Disabled", "True", "Nothing to do on this Platform"),
    ]
    return [
        operator(
            "ingress",
            conditions(
                available="False",
                message="RouterAvailable: 0 of 2 router pods are ready: the last one exited with "
                "1 (bind 0.0.0.0:8080: address in use)",
            ),
            relatedObjects=[
                {"group": "", "resource": "namespaces", "name": "openshift-ingress"},
                {
                    "group": "apps",
                    "resource": "deployments",
                    "namespace": "openshift-ingress-operator",
                    "name": "ingress-operator",
                },
            ],
        ),
        stale("machine-api"),
        operator(
            "operator-lifecycle-manager",
            conditions(
                progressing="True",
                message="3 of 14 subscriptions upgrade: etcd 0.9.2 to 0.9.4, keda 2.17.0 to 2.18.0",
            ),
        ),
        operator("sample", conditions(message="4 notes are kept as ConfigMaps")),
        operator("dns", conditions(message=SCRIPT)),
        operator("baremetal", off),
    ]


def cluster_version(done: str = "34 of 48 done (70% complete), waiting on machine-api") -> Object:
    """A cluster on its way from 0.1.0 to 0.2.0."""
    release = {"version": "0.2.0", "image": "quarterdeck:0.2.0"}
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {"clusterID": "11111111-2222-3333-4444-555555555555", "channel": "stable"},
        "status": {
            "desired": release,
            "observedGeneration": 1,
            "versionHash": "abcdef",
            "availableUpdates": [
                {"version": "0.3.0", "image": "quarterdeck:0.3.0", "url": "https://example.test/"}
            ],
            "history": [
                {
                    "state": "Partial",
                    "startedTime": "2026-11-17T22:40:00Z",
                    "completionTime": None,
                    "version": "0.2.0",
                    "image": "quarterdeck:0.2.0",
                    "verified": True,
                },
                {
                    "state": "Completed",
                    "startedTime": "2026-11-10T08:00:00Z",
                    "completionTime": "2026-11-10T08:03:10Z",
                    "version": "0.1.0",
                    "image": "quarterdeck:0.1.0",
                    "verified": True,
                },
            ],
            "conditions": [
                condition("Available", "True", "Done applying 0.1.0"),
                condition("Failing", "False", ""),
                condition("Progressing", "True", f"Working towards 0.2.0: {done}"),
                condition("ReleaseAccepted", "True", "Payload loaded"),
            ],
        },
    }
