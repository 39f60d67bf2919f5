"""The chart on real nodes: `helm install`, a release that works, and `helm uninstall`."""

import os
import shutil
from pathlib import Path

from tests.e2e.cluster import LIMIT, RealCluster
from tests.e2e.conftest import Images
from tests.e2e.installation import healthy, is_at
from tests.e2e.objects_left import all_objects
from tests.places import DEPLOY

from quarterdeck.localcluster.binaries import BinarySettings, ensure_binaries
from quarterdeck.localcluster.real_nodes.addresses import REGISTRY
from quarterdeck.testing.waiting import eventually, until

VERSION = "1.0.0"
NAMESPACE = "quarterdeck-helm"


def small_release(cluster: RealCluster, images: Images, folder: Path) -> str:
    """A release of the sample operator alone in the registry, by its digest."""
    payload, archive = folder / "payload", folder / "release.tar"
    payload.mkdir()
    shutil.copy(DEPLOY / "payload" / "image-references", payload)
    for path in (DEPLOY / "payload").glob("*_sample_*"):
        shutil.copy(path, payload)
    cluster.quarterdeck(
        *("release", "build", "--version", VERSION, "--from", str(payload), "--keep-others"),
        *("--base", str(images.operators_archive), "-o", str(archive)),
        *("--image", f"quarterdeck={REGISTRY}/quarterdeck"),
    )
    return cluster.push(archive, f"small-release:{VERSION}")


def test_helm_installs_a_release_and_removes_all_of_it(
    cluster: RealCluster, images: Images, tmp_path: Path
) -> None:
    release = small_release(cluster, images, tmp_path)
    helm = str(ensure_binaries(BinarySettings.from_environment(os.environ), ["helm"]).paths["helm"])
    before = all_objects(cluster)
    where = ("--namespace", NAMESPACE)
    chart = ("install", "quarterdeck", str(DEPLOY / "chart"), "--set", f"image={release}")
    cluster.run(helm, *chart, *where, "--create-namespace")
    wait = ("wait", "clusterversion/version", f"--timeout={LIMIT:.0f}s")
    cluster.kubectl(*wait, "--for=create")
    cluster.kubectl(*wait, "--for=condition=Available")
    eventually(lambda: is_at(cluster, VERSION), "the release is applied", limit=LIMIT)
    eventually(lambda: healthy(cluster, VERSION), "its operator is healthy", limit=LIMIT)
    (operator,) = cluster.get("clusteroperators")["items"]
    assert operator["metadata"]["name"] == "sample"
    for namespace in ("openshift-cluster-version", "quarterdeck-staleness"):
        pods = cluster.pods(namespace)
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {release}
        assert len(pods) == 2

    cluster.run(helm, "uninstall", "quarterdeck", *where, "--timeout", f"{LIMIT:.0f}s")
    # Helm made it, and leaves it.
    cluster.kubectl("delete", "namespace", NAMESPACE)
    until(
        lambda: sorted(all_objects(cluster) ^ before),
        lambda left: left == [],
        "the cluster has the objects of before",
        limit=LIMIT,
    )
