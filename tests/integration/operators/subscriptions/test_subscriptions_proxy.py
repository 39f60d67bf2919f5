"""The cluster's proxy reaches the right Deployments at once, and the others not at all."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.operators.subscriptions.bundles import bundle, deployment
from tests.integration.operators.subscriptions.conftest import LIMIT, Cluster, publish

from quarterdeck.testing.waiting import eventually

AT_ONCE = 15.0
"""Seconds within which a change arrives on a busy machine; it takes about one. Without a watch on
the Proxy it would come with the next look at everything, minutes later."""
DEFINITION = "proxies.config.openshift.io"
KIND = "proxies.config.openshift.io"


@pytest.fixture
def two(cluster: Cluster, catalog_root: Path) -> Iterator[Cluster]:
    """Two operators; the config of `alone` sets one of the three variables."""
    alone = bundle("1.0.0", package="alone", account="alone", deployments=[deployment("alone")])
    publish(cluster, catalog_root, bundle("1.0.0"), alone)
    cluster.subscribe("engine")
    cluster.subscribe("alone", config=[{"env": [{"name": "NO_PROXY", "value": ""}]}])
    cluster.wait_phase("engine.v1.0.0")
    cluster.wait_phase("alone.v1.0.0")
    yield cluster
    if cluster.find(KIND, "cluster") is not None:
        cluster.delete(KIND, "cluster")


def set_proxy(cluster: Cluster, value: str) -> None:
    cluster.apply(
        {
            "apiVersion": "config.openshift.io/v1",
            "kind": "Proxy",
            "metadata": {"name": "cluster"},
            "spec": {"httpProxy": value, "noProxy": ".example.com"},
        }
    )


def seconds_until(cluster: Cluster, value: str | None) -> float:
    """How long it takes until the Deployment `engine` has this proxy."""
    began = time.monotonic()

    def is_set() -> bool:
        found = cluster.env("engine").get("HTTP_PROXY") or {}
        return bool(found.get("value") == value)

    eventually(is_set, f"the proxy {value}", LIMIT)
    return time.monotonic() - began


def test_the_proxy_reaches_the_right_deployments_at_once(two: Cluster) -> None:
    """Created, changed, deleted; the Subscription that sets one of the three never gets any."""
    generation = two.get("deployment", "alone")["metadata"]["generation"]
    took = []
    for number in range(4):
        set_proxy(two, f"http://proxy.example.com:{number}")
        took.append(seconds_until(two, f"http://proxy.example.com:{number}"))
    assert two.env("engine")["NO_PROXY"]["value"] == ".example.com"
    two.delete(KIND, "cluster")
    took.append(seconds_until(two, None))
    assert min(took) < AT_ONCE, took
    assert two.get("deployment", "alone")["metadata"]["generation"] == generation
    assert two.env("alone").keys() == {"NAMESPACES", "NO_PROXY"}


def test_the_kind_of_the_proxy_is_installed_later(two: Cluster) -> None:
    """Nothing is wrong without it, and the first Proxy is seen at once."""
    definition = two.get("customresourcedefinition", DEFINITION)
    again: dict[str, object] = {key: definition[key] for key in ("apiVersion", "kind", "spec")}
    kept = ("name", "labels", "annotations")
    again["metadata"] = {key: definition["metadata"].get(key) for key in kept}
    set_proxy(two, "http://proxy.example.com:1")
    seconds_until(two, "http://proxy.example.com:1")
    took = []
    for number in range(2, 4):
        two.delete("customresourcedefinition", DEFINITION)
        try:
            # The operator sees that the kind is gone, and so is the proxy.
            seconds_until(two, None)
            gone = lambda: two.find("customresourcedefinition", DEFINITION) is None  # noqa: E731
            eventually(gone, "the kind is gone", LIMIT)
        finally:
            two.apply(again)
        eventually(lambda: is_established(two), "the kind is there again", LIMIT)
        value = f"http://proxy.example.com:{number}"
        set_proxy(two, value)
        took.append(seconds_until(two, value))
    assert min(took) < AT_ONCE, took


def is_established(cluster: Cluster) -> bool:
    found = cluster.find("customresourcedefinition", DEFINITION) or {}
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
