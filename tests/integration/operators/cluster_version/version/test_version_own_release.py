"""Quarterdeck's own releases: the operator comes up from its Deployment, and replaces itself."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.operators.cluster_version.version.releases import Cluster
from tests.integration.pods import needs_bubblewrap
from tests.own_release import NAMESPACE, own_release

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.releases import FIRST, NEXT
from quarterdeck.testing.waiting import eventually

pytestmark = [
    pytest.mark.slow,
    needs_bubblewrap,
]


@pytest.fixture
def own(node_agent: ControlPlane, cluster: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """The cluster version operator from its own Deployment on `this-machine`."""
    with own_release(node_agent, tmp_path / "releases") as own:
        yield own


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
