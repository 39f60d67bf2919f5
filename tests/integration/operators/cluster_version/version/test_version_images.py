"""From release to release by images of a real registry: by digest, by tag, by the update graph."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
)
from tests.registry_process import RunningRegistry, running_registry
from tests.release_images import new_key, public_pem, release_image, signatures_of
from tests.scripted_registry import ScriptedRegistry, scripted_registry
from tests.unit.update_graph.graphs import ALWAYS, PROMQL, conditional, risk

from quarterdeck.oci.layers import Image
from quarterdeck.oci.signature import signature_tag
from quarterdeck.registry.client import Registry
from quarterdeck.registry.credentials import read_pull_secret
from quarterdeck.registry.push import push_image
from quarterdeck.registry.reference import parse_reference
from quarterdeck.testing.operator_process import StartOperator
from quarterdeck.testing.waiting import eventually
from quarterdeck.web import Web


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    with running_registry(tmp_path_factory.mktemp("registry")) as one:
        yield one


@pytest.fixture
def service(real: RunningRegistry) -> Iterator[ScriptedRegistry]:
    """An update service."""
    with scripted_registry(real.tls) as one:
        yield one


def push(real: RunningRegistry, name: str, image: Image) -> str:
    """Push an image; return it by its digest."""

    async def work() -> str:
        async with Web(ca_file=str(real.tls.ca)) as web:
            registry = Registry(web, credentials=read_pull_secret(str(real.secret)))
            target = parse_reference(f"{real.address}/{name}")
            return str(await push_image(registry, target, image))

    return asyncio.run(work())


def release(
    cluster: Cluster, version: str, *previous: str, name: str = "cargo", **data: str
) -> Image:
    """A release that is one ConfigMap."""
    manifest = config_map(name, cluster.namespace, version=version, **data)
    return release_image(version, {"0000_10_cargo_00.json": manifest}, previous)


def history(cluster: Cluster) -> list[tuple[str, str, bool]]:
    return [(one["version"], one["image"], one["verified"]) for one in cluster.status()["history"]]


def offer_graph(
    service: ScriptedRegistry,
    images: dict[str, str],
    edges: list[tuple[int, int]],
    risks: list[Any] | None = None,
) -> None:
    nodes = [{"version": version, "payload": image} for version, image in images.items()]
    graph = {"nodes": nodes, "edges": edges, "conditionalEdges": risks or []}
    service.stored["/graph"] = ("application/json", json.dumps(graph).encode())


def test_by_image_by_tag_and_back_after_the_loss_of_what_was_fetched(
    cluster: Cluster, releases: Releases, run_cvo: StartOperator, real: RunningRegistry
) -> None:
    """The history tells the digest; a tag is resolved once, and moves nothing when it moves."""
    here = cluster.namespace
    releases.write("1.0.0", {"0000_10_cargo_00.json": config_map("cargo", here, version="1.0.0")})
    first = run_cvo("1.0.0", *real.options)
    cluster.wait_release("1.0.0")
    assert cluster.condition("RetrievedUpdates")["reason"] == "ReleasesDirectory"

    by_digest = push(real, f"{here}/q:one", release(cluster, "1.1.0", "1.0.0"))
    cluster.ask(image=by_digest)
    cluster.wait_release("1.1.0")
    assert history(cluster)[0] == ("1.1.0", by_digest, False)
    assert cluster.find("configmap", "cargo")["data"] == {"version": "1.1.0"}
    assert cluster.status()["desired"]["image"] == by_digest
    accepted = cluster.condition("ReleaseAccepted")
    assert (accepted["status"], accepted["reason"]) == ("True", "PayloadLoaded")

    two = push(real, f"{here}/q:stable", release(cluster, "1.2.0", "1.1.0"))
    tag = f"{real.address}/{here}/q:stable"
    cluster.ask(image=tag)
    cluster.wait_release("1.2.0")
    recorded = f"{tag}@{two.partition('@')[2]}"
    assert history(cluster)[0] == ("1.2.0", recorded, False)

    # The tag moves, the operator starts anew, and what it had fetched is lost.
    push(real, f"{here}/q:stable", release(cluster, "1.3.0", "1.2.0"))
    first.kill()
    shutil.rmtree(releases.root / ".fetched")
    cluster.delete("configmap", "cargo")
    run_cvo("1.0.0", *real.options)
    eventually(lambda: cluster.find("configmap", "cargo"), "the object, restored")
    assert cluster.find("configmap", "cargo")["data"] == {"version": "1.2.0"}
    cluster.wait_condition("ReleaseAccepted", "True")
    assert cluster.condition("Failing")["status"] == "False"
    assert history(cluster)[0] == ("1.2.0", recorded, False)

    # A version that ran before is fetched again by the image in the history.
    cluster.ask(version="1.1.0")
    cluster.wait_condition("ReleaseAccepted", "False", "it cannot be reached from 1.2.0")


def test_by_graph_with_verification_and_risks(
    cluster: Cluster,
    releases: Releases,
    run_cvo: StartOperator,
    real: RunningRegistry,
    service: ScriptedRegistry,
    tmp_path: Path,
) -> None:
    """The edges decide, the signatures are checked, and conditional updates show their risks."""
    here, key = cluster.namespace, new_key()
    (tmp_path / "key.pub").write_bytes(public_pem(key))
    releases.write("1.0.0", {"0000_10_cargo_00.json": config_map("cargo", here, version="1.0.0")})
    images = {"1.0.0": "quarterdeck:1.0.0"}
    for version in ("1.0.1", "1.0.2", "1.0.3"):
        # None lists a previous version: with a service, its edges decide.
        image = push(real, f"{here}/graph:{version}", release(cluster, version))
        name, _, digest = image.partition("@")
        if version != "1.0.2":
            tagged = f"{here}/graph:{signature_tag(digest)}"
            push(real, tagged, signatures_of(name, digest, key))
        images[version] = image
    risks = [
        conditional("1.0.0", "1.0.3", risk("Leak", ALWAYS)),
        conditional("1.0.1", "1.0.3", risk("Leak", PROMQL)),
    ]
    offer_graph(service, images, [(0, 1), (1, 2)], risks)
    options = (f"--verification-key={tmp_path / 'key.pub'}", "--upstream-interval=2s")
    run_cvo("1.0.0", *real.options, *options)
    cluster.wait_release("1.0.0")
    upstream = f"https://{service.address}/graph"
    cluster.patch("clusterversion", "version", {"spec": {"upstream": upstream}})
    cluster.wait_condition("RetrievedUpdates", "False", "spec.channel")
    cluster.patch("clusterversion", "version", {"spec": {"channel": "stable-1"}})
    cluster.wait_condition("RetrievedUpdates", "True", "stable-1")
    (asked, *_) = service.asked
    cluster_id = cluster.find("clusterversion", "version")["spec"]["clusterID"]
    assert f"arch=amd64&channel=stable-1&id={cluster_id}&version=1.0.0" in asked.path

    status = cluster.status()
    assert [one["version"] for one in status["availableUpdates"]] == ["1.0.1"]
    assert status["availableUpdates"][0]["image"] == images["1.0.1"]
    (update,) = status["conditionalUpdates"]
    assert update["release"]["version"] == "1.0.3"
    assert [(c["status"], c["reason"]) for c in update["conditions"]] == [("False", "Leak")]

    cluster.ask(version="1.0.2")
    refused = cluster.wait_condition("ReleaseAccepted", "False", "no update from 1.0.0 to it")
    assert "move to 1.0.1 or 1.0.3 instead" in refused["message"]

    cluster.ask(version="1.0.1")
    cluster.wait_release("1.0.1")
    assert history(cluster)[0] == ("1.0.1", images["1.0.1"], True)
    eventually(
        lambda: [one["version"] for one in cluster.status()["availableUpdates"]] == ["1.0.2"],
        "the updates of the new version",
    )
    (update,) = cluster.status()["conditionalUpdates"]
    (recommended,) = update["conditions"]
    assert (recommended["status"], recommended["reason"]) == ("Unknown", "NotEvaluated")

    # 1.0.2 has no signature.
    cluster.ask(version="1.0.2")
    refused = cluster.wait_condition("ReleaseAccepted", "False", "it has no signature")
    assert refused["reason"] == "ReleaseNotVerified"
    assert "spec.desiredUpdate.force" in refused["message"]
    assert cluster.find("configmap", "cargo")["data"] == {"version": "1.0.1"}
    cluster.ask(version="1.0.2", force=True)
    cluster.wait_release("1.0.2")
    assert history(cluster)[0] == ("1.0.2", images["1.0.2"], False)
    assert "no signature of the verification key" in cluster.status()["history"][0]["acceptedRisks"]
