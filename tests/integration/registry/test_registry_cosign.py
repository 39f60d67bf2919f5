"""The same signatures as cosign's: it verifies ours, and we verify its, on a real registry."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.registry_process import PASSWORD, USER, RunningRegistry, running_registry, web_client
from tests.release_images import new_key, public_pem, release_image, signatures_of

from quarterdeck.oci.model import ImageManifest, decode_manifest
from quarterdeck.oci.signature import signature_tag, signing_payload
from quarterdeck.registry.client import Registry
from quarterdeck.registry.credentials import read_pull_secret
from quarterdeck.registry.push import push_image
from quarterdeck.registry.reference import Reference, parse_reference
from quarterdeck.registry.release_image import NotVerified, fetch_release, verification_key
from quarterdeck.registry.release_store import ReleaseStore

INSTALL = "Debian's package of trixie runs here too"
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(shutil.which("cosign") is None, reason=f"no cosign on the PATH: {INSTALL}"),
]


class Cosign:
    """The program, with the registry's authority and password, and without public services."""

    def __init__(self, registry: RunningRegistry, directory: Path) -> None:
        self._registry = registry
        self._directory = directory

    def __call__(self, command: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        reach = ["--registry-cacert", str(self._registry.tls.ca)]
        reach += ["--registry-username", USER, "--registry-password", PASSWORD]
        return subprocess.run(
            ["cosign", command, *(reach if command in ("sign", "verify") else ()), *arguments],
            cwd=self._directory,
            env={**os.environ, "COSIGN_PASSWORD": "", "HOME": str(self._directory)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def verify(self, key: str, image: Reference) -> "subprocess.CompletedProcess[str]":
        return self("verify", "--key", key, "--insecure-ignore-tlog=true", str(image))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    with running_registry(tmp_path_factory.mktemp("registry")) as one:
        yield one


@pytest.fixture
async def registry(running: RunningRegistry) -> AsyncIterator[Registry]:
    async with web_client(running.tls) as web:
        yield Registry(web, credentials=read_pull_secret(str(running.secret)))


@pytest.fixture
def cosign(running: RunningRegistry, tmp_path: Path) -> Cosign:
    return Cosign(running, tmp_path)


async def test_cosign_verifies_our_signature(
    cosign: Cosign, registry: Registry, running: RunningRegistry, tmp_path: Path
) -> None:
    key = new_key()
    (tmp_path / "key.pub").write_bytes(public_pem(key))
    (tmp_path / "other.pub").write_bytes(public_pem(new_key()))
    target = parse_reference(f"{running.address}/ours:1")
    image = await push_image(registry, target, release_image("1.0.0"))
    assert cosign.verify("key.pub", image).returncode != 0
    signature = signatures_of(image.name, image.digest, key)
    await push_image(registry, target.tagged(signature_tag(image.digest)), signature)
    done = cosign.verify("key.pub", image)
    assert done.returncode == 0, done.stderr
    assert image.digest in done.stdout
    assert cosign.verify("other.pub", image).returncode != 0


async def test_we_verify_the_signature_of_cosign(
    cosign: Cosign, registry: Registry, running: RunningRegistry, tmp_path: Path
) -> None:
    """And what it signs and stores is, byte by byte, what we do."""
    assert cosign("generate-key-pair").returncode == 0
    target = parse_reference(f"{running.address}/theirs:1")
    image = await push_image(registry, target, release_image("1.0.0"))
    key = verification_key((tmp_path / "cosign.pub").read_bytes())
    store = ReleaseStore(tmp_path / "store")
    with pytest.raises(NotVerified, match="it has no signature"):
        await fetch_release(registry, image, store, key)
    done = cosign("sign", "--key", "cosign.key", "--tlog-upload=false", "--yes", str(image))
    assert done.returncode == 0, done.stderr
    assert (await fetch_release(registry, image, store, key)).verified_by == key.identifier
    with pytest.raises(NotVerified, match="another key"):
        await fetch_release(registry, image, store, verification_key(public_pem(new_key())))

    stored = await registry.manifest(image.tagged(signature_tag(image.digest)))
    theirs = decode_manifest(stored.data)
    assert isinstance(theirs, ImageManifest)
    ours = signatures_of(image.name, image.digest, new_key()).manifest
    (layer,), (own,) = theirs.layers, ours.layers
    assert stored.media_type == "application/vnd.oci.image.manifest.v1+json"
    assert theirs.config.media_type == ours.config.media_type
    assert (layer.media_type, layer.digest, layer.size) == (own.media_type, own.digest, own.size)
    assert layer.annotations.keys() == own.annotations.keys()
    payload = await registry.small_blob(image, layer.digest, layer.size)
    assert payload == signing_payload(image.name, image.digest)
