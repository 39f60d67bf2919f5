"""Registries and update services that misbehave: told in a condition, and nothing is applied."""

import json
from collections.abc import Callable, Iterator
from functools import partial
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
from tests.scripted_registry import Handler, Script, ScriptedRegistry, scripted_registry
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


def drip(handler: Handler) -> None:
    """A byte now and then, for longer than anybody waits."""
    handler.send_response(200)
    _, stored = handler.owner.stored.get(handler.path, ("", bytes(100_000)))
    handler.send_header("Content-Length", str(len(stored)))
    handler.end_headers()
    while not handler.owner.ended.is_set():
        handler.wfile.write(b" ")
        handler.owner.quiet(0.2)


def bombs() -> str:
    """Documents of aliases; the version in each makes a copy of what they stand for."""
    lines = ["a: &a [{}, {}, {}, {}, {}, {}, {}, {}, {}, {}] # 0.0.1-snapshot"]
    for name, before in zip("bcde", "abcd", strict=True):
        lines.append(f"{name}: &{name} [" + ", ".join([f"*{before}"] * 10) + "]")
    document = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n" + "\n".join(lines)
    return "\n---\n".join([document] * 900)


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
    process = start("--retrieval-timeout=6s")
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

    # Another release each time: the same one is tried again only after a back-off.
    versions = (f"1.1.{number}" for number in range(1, 20))

    def faulty(script: Script, part: str = "/v2/q/") -> str:
        """A good release that the registry gives away by this script."""
        scripted.scripts = {part: script}
        return scripted.put("q", good(cluster, next(versions)))

    def other_bytes(handler: Handler) -> None:
        handler.reply(200, bytes(len(scripted.stored[handler.path][1])))

    blobs = "/v2/q/blobs/"
    refused(
        faulty(other_bytes, blobs), invalid, "the registry sends other content", "push the image"
    )
    refused(
        faulty(partial(Handler.reply, status=200, body=b"cut"), blobs), invalid, "only 3 of", ""
    )
    refused(
        faulty(lambda handler: handler.reply(401, b"", **CHALLENGE)),
        "NotAuthorized",
        "refuses the pull secret",
        "correct the pull secret",
    )
    refused(
        faulty(partial(Handler.reply, status=302, Location="http://127.0.0.1/")),
        "RegistryUnreachable",
        "not protected by TLS",
        "https",
    )
    # Bytes that are no text: the status could not be written with them.
    refused(
        faulty(partial(Handler.reply, status=302, Location="https://127.0.0.1:1/\xff\x1b")),
        "RegistryUnreachable",
        r"/\udcff\x1b: no connection",
        "check the address",
    )
    refused("127.0.0.1:1/q:1", "RegistryUnreachable", "/1: no connection", "check the address")
    refused(
        faulty(partial(Handler.reply, status=429, Retry_After="1000")),
        "RegistryBusy",
        "busy (status 429) and asks to come back in 1000 seconds",
        "name a mirror",
    )
    refused(
        faulty(drip, blobs),
        "RegistryUnreachable",
        "not fetched within 6 seconds",
        "or set --retrieval-timeout",
    )
    assert peak_memory(process) - before < 100_000

    # A few kilobytes that stand for gigabytes are found when the payload is read.
    scripted.scripts.clear()
    image = release_image("1.1.99", {"0000_10_a.yaml": bombs()}, ["1.0.0"])
    cluster.ask(image=scripted.put("bombs", image))
    seen = cluster.wait_condition("ReleaseAccepted", "False", "more than 2,000,000 values")
    assert seen["reason"] == "RetrievePayload"
    assert cluster.find("configmap", "cargo")["data"] == {"version": "1.0.0"}
    assert peak_memory(process) - before < 400_000


def test_a_busy_registry_a_redirect_and_a_tag_that_moves_meanwhile(
    cluster: Cluster, start: Callable[..., OperatorProcess], scripted: ScriptedRegistry, tls: Tls
) -> None:
    """The update takes what the tag meant at first, and another host gets no credentials."""
    start()
    image, other = good(cluster), good(cluster, "6.6.6")
    scripted.put("q", image, "stable")
    layer = f"/v2/q/blobs/{image.manifest.layers[-1].digest}"
    with scripted_registry(tls) as storage:
        storage.stored["/bucket"] = scripted.stored[layer]
        busy = iter([429, 503])

        def guarded(handler: Handler) -> None:
            if not handler.headers.get("Authorization"):
                handler.reply(401, b"", **CHALLENGE)
            elif status := next(busy, 0):
                handler.reply(status, b"", Retry_After="1")
            elif handler.path == layer:
                scripted.put("q", other, "stable")
                handler.reply(307, b"", Location=f"https://{storage.address}/bucket")
            else:
                media_type, data = scripted.stored[handler.path]
                handler.reply(200, data, **{"Content-Type": media_type})

        scripted.scripts["/v2/q/"] = guarded
        tag = f"{scripted.address}/q:stable"
        cluster.ask(image=tag)
        cluster.wait_release("1.1.0")
        assert [one.authorization for one in storage.asked] == [""]
    assert cluster.find("configmap", "cargo")["data"] == {"version": "1.1.0"}
    (newest, _) = cluster.status()["history"]
    assert newest["image"] == f"{tag}@{image.descriptor.digest}"
    assert "6.6.6" not in json.dumps(cluster.status())


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
    process = start("--retrieval-timeout=3s")
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
    scripted.scripts["/graph"] = partial(Handler.reply, status=429, Retry_After="1")
    busy = told("the service is busy (status 429) and asks to come back in 1 seconds")
    assert busy["reason"] == "RemoteBusy"
    scripted.scripts["/graph"] = drip
    assert told("no whole answer in 3 seconds")["reason"] == "RemoteFailed"
    scripted.scripts.clear()
    assert peak_memory(process) - before < 100_000
    serve(graph(("1.0.0", "1.0.1"), (0, 1)))
    cluster.wait_condition("RetrievedUpdates", "True")
    assert [one["version"] for one in cluster.status()["availableUpdates"]] == ["1.0.1"]
    # The service goes away: what it offered is still shown.
    serve(b"")
    told("the updates shown are those that it offered then")
    assert [one["version"] for one in cluster.status()["availableUpdates"]] == ["1.0.1"]
    serve(graph(("2.0.0",)))
    cluster.wait_condition("RetrievedUpdates", "False", "does not have 1.0.0")
    # Without a service, the directory decides again.
    cluster.patch("clusterversion", "version", {"spec": {"upstream": None}})
    cluster.wait_condition("RetrievedUpdates", "True", "ReleasesDirectory")
    assert json.dumps(cluster.status()).count("1.0.1") == 0
