"""Registries and update services that misbehave: told in a condition, and nothing is applied."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tarfile import CHRTYPE, SYMTYPE

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.integration.operators.cluster_version.version.releases import (
    Cluster,
    Releases,
    config_map,
)
from tests.oci_bytes import entry
from tests.registry_process import Tls, pull_secret
from tests.release_images import (
    hostile_image,
    new_key,
    public_pem,
    release_image,
    signatures_of,
    zeros_image,
)
from tests.scripted_registry import Handler, ScriptedRegistry, scripted_registry
from tests.unit.update_graph.graphs import graph

from quarterdeck.oci.layers import Image
from quarterdeck.oci.signature import signature_tag
from quarterdeck.testing.operator_process import OperatorProcess, StartOperator
from quarterdeck.testing.waiting import eventually

CHALLENGE = {"WWW-Authenticate": 'Basic realm="x"'}


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return Tls(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def scripted(tls: Tls) -> Iterator[ScriptedRegistry]:
    with scripted_registry(tls) as one:
        yield one


@pytest.fixture
def start(
    cluster: Cluster,
    releases: Releases,
    run_cvo: StartOperator,
    scripted: ScriptedRegistry,
    tmp_path: Path,
) -> Callable[..., OperatorProcess]:
    """The operator on release 1.0.0, with a pull secret for the registry."""

    def work(*options: str) -> OperatorProcess:
        manifest = config_map("cargo", cluster.namespace, version="1.0.0")
        releases.write("1.0.0", {"0000_10_cargo_00.json": manifest})
        secret = pull_secret(tmp_path, scripted.address)
        process = run_cvo(
            "1.0.0",
            f"--pull-secret={secret}",
            f"--registry-ca={scripted.tls.ca}",
            "--upstream-interval=1s",
            *options,
        )
        cluster.wait_release("1.0.0")
        return process

    return work


def good(cluster: Cluster, version: str = "1.1.0") -> Image:
    manifest = config_map("cargo", cluster.namespace, version=version)
    return release_image(version, {"0000_10_cargo_00.json": manifest}, ["1.0.0"])


def peak_memory(process: OperatorProcess) -> int:
    """The most kilobytes that the process had."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1])


def test_images_under_fire(
    cluster: Cluster,
    releases: Releases,
    start: Callable[..., OperatorProcess],
    scripted: ScriptedRegistry,
) -> None:
    """Each is refused with the reason and what to do; memory and disk stay as they were."""
    process = start()
    before = peak_memory(process)
    kept = releases.root / ".fetched"

    def refused(image: str, reason: str, told: str, remedy: str) -> None:
        cluster.ask(image=image)
        seen = cluster.wait_condition("ReleaseAccepted", "False", told)
        assert seen["reason"] == reason
        assert image in seen["message"]
        assert remedy in seen["message"]
        assert cluster.find("configmap", "cargo")["data"] == {"version": "1.0.0"}
        assert [one["version"] for one in cluster.status()["history"]] == ["1.0.0"]
        assert cluster.condition("Failing")["status"] == "False"
        eventually(lambda: list(kept.rglob("*")) == [], "nothing left of it")

    invalid = "ContentInvalid"
    refused(
        scripted.put("bomb", zeros_image(1 << 30)), invalid, "larger than 4 MiB", "push the release"
    )
    for number, (hostile, told) in enumerate(
        (
            (entry("release-manifests/a", type=SYMTYPE, linkname="/etc/passwd"), "link"),
            (entry("release-manifests/a", type=CHRTYPE), "device"),
            (entry("release-manifests/../../a", b"x"), "leads out of the image"),
        )
    ):
        image = hostile_image(hostile, version=f"9.9.{number}")
        refused(scripted.put("hostile", image), invalid, told, "name another one")
    refused(scripted.put_manifest("large", b" " * (50 << 20)), invalid, "larger than 4 MiB", "name")
    assert peak_memory(process) - before < 100_000

    image = good(cluster)
    reference = scripted.put("q", image)
    layer = f"/v2/q/blobs/{image.manifest.layers[-1].digest}"
    data = scripted.stored[layer][1]
    scripted.scripts[layer] = lambda handler: handler.reply(200, bytes(len(data)))
    refused(reference, invalid, "the registry sends other content", "push the image again")
    scripted.scripts[layer] = lambda handler: handler.reply(200, data[:20])
    refused(reference, invalid, f"only 20 of {len(data)} bytes", "push the image again")
    scripted.scripts["/v2/q/"] = lambda handler: handler.reply(401, b"", **CHALLENGE)
    refused(reference, "NotAuthorized", "refuses the pull secret", "correct the pull secret")
    scripted.scripts["/v2/q/"] = lambda handler: handler.reply(
        302, b"", Location="http://127.0.0.1/"
    )
    refused(reference, "RegistryUnreachable", "not protected by TLS", "https")
    refused("127.0.0.1:1/q:1", "RegistryUnreachable", "no connection", "check the address")

    # What was wrong is mended, and the update begins by itself.
    def busy_once(handler: Handler) -> None:
        scripted.scripts.clear()
        handler.reply(429, b"", **{"Retry-After": "1"})

    scripted.scripts.clear()
    scripted.scripts["/v2/q/"] = busy_once
    cluster.ask(image=reference)
    cluster.wait_release("1.1.0")
    assert cluster.find("configmap", "cargo")["data"] == {"version": "1.1.0"}
    assert peak_memory(process) - before < 100_000


def test_signatures_under_fire(
    cluster: Cluster,
    releases: Releases,
    start: Callable[..., OperatorProcess],
    scripted: ScriptedRegistry,
    tmp_path: Path,
) -> None:
    """No signature, one of another key, one of another image; then the right one."""
    key = new_key()
    (tmp_path / "key.pub").write_bytes(public_pem(key))
    start(f"--verification-key={tmp_path / 'key.pub'}")

    def signed(version: str, by: ec.EllipticCurvePrivateKey | None, digest: str = "") -> str:
        image = good(cluster, version)
        own = image.descriptor.digest
        if by is not None:
            scripted.put("q", signatures_of("q", digest or own, by), signature_tag(own))
        return scripted.put("q", image)

    # Another release each time: the same one is tried again only after a back-off.
    for reference, told in (
        (signed("1.1.1", None), "it has no signature"),
        (signed("1.1.2", new_key()), "a signature of another key"),
        (signed("1.1.3", key, "sha256:" + "a" * 64), "a signature of another image"),
    ):
        scripted.asked.clear()
        cluster.ask(image=reference)
        seen = cluster.wait_condition("ReleaseAccepted", "False", told)
        assert seen["reason"] == "ReleaseNotVerified"
        assert "sign it with the key of --verification-key" in seen["message"]
    assert cluster.find("configmap", "cargo")["data"] == {"version": "1.0.0"}
    assert not list((releases.root / ".fetched").glob("*"))
    cluster.ask(image=signed("1.1.0", key))
    cluster.wait_release("1.1.0")
    assert cluster.status()["history"][0]["verified"] is True


def test_graphs_under_fire(
    cluster: Cluster, start: Callable[..., OperatorProcess], scripted: ScriptedRegistry
) -> None:
    """RetrievedUpdates says what is wrong; what was known stays; updates wait for an answer."""
    process = start()
    before = peak_memory(process)
    many = tuple(f"1.0.{number}" for number in range(10_000))

    def serve(data: bytes) -> None:
        scripted.stored["/graph"] = ("application/json", data)

    def told(text: str) -> dict[str, str]:
        seen = cluster.wait_condition("RetrievedUpdates", "False", text)
        assert "it is asked again" in seen["message"]
        return seen

    serve(b"<html>It works!</html>")
    upstream = f"https://{scripted.address}/graph"
    spec = {"spec": {"upstream": upstream, "channel": "stable-1"}}
    cluster.patch("clusterversion", "version", spec)
    assert told("not JSON")["reason"] == "ResponseInvalid"
    cluster.ask(version="1.1.0")
    seen = cluster.wait_condition("ReleaseAccepted", "False", "the update service does not answer")
    assert seen["reason"] == "UpdatesNotRetrieved"
    serve(graph(many))
    told("10000 of them, more than 5000")
    serve(b'{"nodes": [' + b" " * (50 << 20))
    told("larger than")
    serve(graph(("1.0.0", "1.0.1"), (0, 1), (1, 0)))
    told("a cycle, among 1.0.0, 1.0.1")
    del scripted.stored["/graph"]
    assert told("status 404")["reason"] == "ResponseFailed"
    assert peak_memory(process) - before < 100_000
    serve(graph(("1.0.0", "1.0.1"), (0, 1)))
    cluster.wait_condition("RetrievedUpdates", "True")
    assert [one["version"] for one in cluster.status()["availableUpdates"]] == ["1.0.1"]
    # The service goes away: what it offered is still shown.
    serve(b"")
    told("the updates shown are those that it offered before")
    assert [one["version"] for one in cluster.status()["availableUpdates"]] == ["1.0.1"]
    serve(graph(("2.0.0",)))
    cluster.wait_condition("RetrievedUpdates", "False", "does not have 1.0.0")
    # Without a service, the directory decides again.
    cluster.patch("clusterversion", "version", {"spec": {"upstream": None}})
    cluster.wait_condition("RetrievedUpdates", "True", "ReleasesDirectory")
    assert json.dumps(cluster.status()).count("1.0.1") == 0
