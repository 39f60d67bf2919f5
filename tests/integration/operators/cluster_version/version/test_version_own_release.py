"""Quarterdeck's own releases: the operator comes up from its Deployment, and replaces itself."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.operators.cluster_version.version.releases import Cluster
from tests.integration.pods import needs_bubblewrap

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.infrastructure import ensure_infrastructure
from quarterdeck.localcluster.releases import (
    FIRST,
    NEXT,
    apply_as_operator,
    bootstrap_manifests,
    write_releases,
)
from quarterdeck.testing.waiting import eventually

pytestmark = [
    pytest.mark.slow,
    needs_bubblewrap,
]
NAMESPACE = "openshift-cluster-version"
OTHERS = ("quarterdeck-sample", "openshift-machine-api")
"""The namespaces of the other operators."""


@pytest.fixture
def own(node_agent: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """The cluster version operator from its own Deployment on `this-machine`."""
    write_releases(tmp_path / "releases")
    ensure_infrastructure(node_agent)
    own = Cluster(node_agent, NAMESPACE)
    # A real payload of others, applied by a test before this, has a Deployment of this name with
    # another selector, which cannot be changed.
    own.kubectl("delete", "deployment", "cluster-version-operator", "--ignore-not-found")
    apply_as_operator(node_agent, bootstrap_manifests(tmp_path / "releases"))
    yield own
    take_away(own)


def take_away(own: Cluster) -> None:
    """Remove the operators; the cluster version operator first, or it brings the others back."""
    name = "cluster-version-operator"
    left_alone = {"group": "apps", "kind": "Deployment", "namespace": NAMESPACE, "name": name}
    overrides = [{**left_alone, "unmanaged": True}]
    own.patch("clusterversion", "version", {"spec": {"overrides": overrides}})

    def is_gone() -> bool:
        # It may bring its Deployment back until it has seen the override.
        delete_all(own, NAMESPACE)
        return not own.all("pods") and not own.find("deployment", name)

    eventually(is_gone, "no pods of the operator left")
    own.kubectl("delete", "clusterrolebinding", "quarterdeck-cluster-version", "--ignore-not-found")
    # Again: a process that was being killed may have brought one back.
    delete_all(own, NAMESPACE)
    for namespace in OTHERS:
        delete_all(own, namespace)

    # A ReplicaSet may have made one more pod while it was deleted.
    def none_left() -> bool:
        return not any(own.all("pods", namespace=namespace) for namespace in OTHERS)

    eventually(none_left, "no pods left")


def delete_all(own: Cluster, namespace: str) -> None:
    there = ("deployments,replicasets,pods", "--all", f"--namespace={namespace}")
    own.plane.kubectl("delete", *there, "--grace-period=0", "--force")


def ready_releases(own: Cluster, namespace: str) -> list[str]:
    """The release of each pod that is ready and stays."""
    found = []
    for pod in own.all("pods", namespace=namespace):
        ready = any(
            (one["type"], one["status"]) == ("Ready", "True")
            for one in pod["status"].get("conditions", [])
        )
        if ready and "deletionTimestamp" not in pod["metadata"]:
            variables = pod["spec"]["containers"][0]["env"]
            found += [one["value"] for one in variables if one["name"] == "RELEASE_VERSION"]
    return found


def holder(own: Cluster) -> str:
    lease = own.find("lease", "cluster-version-operator")
    return str(lease["spec"]["holderIdentity"]).partition("_")[0] if lease else ""


def runs_release(own: Cluster, version: str) -> bool:
    """Whether the operator's Deployment says this release, and no other."""
    found = own.find("deployment", "cluster-version-operator")
    (container,) = found["spec"]["template"]["spec"]["containers"]
    values = {one.get("value") for one in container["env"]} & {FIRST, NEXT}
    return bool(values == {version} and container["image"] == f"quarterdeck:{version}")


def test_the_operator_installs_the_rest_and_replaces_itself_in_an_update(own: Cluster) -> None:
    """The old process begins the update, and the new one ends it."""
    own.wait_release(FIRST)
    assert own.find("featuregate", "cluster")
    assert ready_releases(own, "quarterdeck-sample") == [FIRST, FIRST]
    told = own.find("clusteroperator", "baremetal")["status"]["conditions"]
    disabled = [one["status"] for one in told if one["type"] == "Disabled"]
    assert disabled == ["True"]  # the platform of a local cluster is None
    own.patch("clusterversionoperator", "cluster", {"spec": {"operatorLogLevel": "Debug"}})

    # The history says which release the cluster has, not the process that happens to run.
    other = {"name": "operator", "env": [{"name": "RELEASE_VERSION", "value": NEXT}]}
    patch = json.dumps({"spec": {"template": {"spec": {"containers": [other]}}}})
    own.kubectl("patch", "deployment", "cluster-version-operator", f"--patch={patch}")
    eventually(lambda: runs_release(own, FIRST), "the Deployment as the release has it")
    eventually(lambda: ready_releases(own, NAMESPACE) == [FIRST, FIRST], "its pods too")
    assert [one["version"] for one in own.status()["history"]] == [FIRST]

    before = {pod["metadata"]["name"] for pod in own.all("pods")}
    own.ask(version=NEXT)
    own.wait_release(NEXT, limit=180)
    assert runs_release(own, NEXT)
    assert ready_releases(own, "quarterdeck-sample") == [NEXT, NEXT]
    eventually(lambda: ready_releases(own, NAMESPACE) == [NEXT, NEXT], f"only pods of {NEXT}")
    # One that was told to go before may have led last.
    eventually(lambda: holder(own) not in {"", *before}, "a leader of the new release")
    operator = own.find("clusteroperator", "sample")
    assert operator["status"]["versions"] == [{"name": "operator", "version": NEXT}]
    # What is created only, and then the administrator's, is left alone.
    level = own.find("clusterversionoperator", "cluster")["spec"]["operatorLogLevel"]
    assert level == "Debug"
    history = [(one["version"], one["state"]) for one in own.status()["history"]]
    assert history == [(NEXT, "Completed"), (FIRST, "Completed")]
