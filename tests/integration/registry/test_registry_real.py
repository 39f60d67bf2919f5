"""The client with a real registry: push, read, credentials, mirrors."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.registry_process import RunningRegistry, pull_secret, running_registry, web_client
from tests.release_images import new_key, public_pem, release_image, signatures_of

from quarterdeck.cli.release_registry import read_from_registry
from quarterdeck.images.release import BASE_LABEL
from quarterdeck.oci.model import digest_of
from quarterdeck.oci.signature import signature_tag
from quarterdeck.payload.releases import FETCHED, read_releases
from quarterdeck.registry.client import Registry
from quarterdeck.registry.credentials import RegistryCredentials, read_pull_secret
from quarterdeck.registry.errors import ImageNotFound, NotAuthorized, RegistryUnreachable
from quarterdeck.registry.mirrors import parse_mirrors
from quarterdeck.registry.push import push_image
from quarterdeck.registry.reference import parse_reference
from quarterdeck.registry.release_image import NotVerified, fetch_release, verification_key
from quarterdeck.registry.release_store import ReleaseStore
from quarterdeck.web import Web


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    with running_registry(tmp_path_factory.mktemp("registry")) as one:
        yield one


def client(web: Web, real: RunningRegistry) -> Registry:
    return Registry(web, credentials=read_pull_secret(str(real.secret)))


async def test_a_release_is_pushed_and_fetched_again(real: RunningRegistry, tmp_path: Path) -> None:
    """Only the release is unpacked, it is sealed, and its image is known by its digest."""
    target = parse_reference(f"{real.address}/ships/quarterdeck:1.0.0")
    async with web_client(real.tls) as web:
        registry = client(web, real)
        pushed = await push_image(
            registry, target, release_image("1.0.0", {"0000_10_a.yaml": "a: 1"})
        )
        again = await push_image(
            registry, target, release_image("1.0.0", {"0000_10_a.yaml": "a: 1"})
        )
        store = ReleaseStore(tmp_path / FETCHED)
        found = await fetch_release(registry, target, store)
    assert pushed == again
    assert found.digest == pushed.digest
    (offer,) = read_releases(tmp_path).fetched
    assert (offer.release.version, offer.release.image) == ("1.0.0", str(pushed))
    assert (offer.digest, offer.verified_by) == (pushed.digest, "")
    names = sorted(path.name for path in offer.directory.iterdir())
    assert names == ["0000_10_a.yaml", "SHA256SUMS", "release-image", "release-metadata"]
    assert [path.name for path in store.root.iterdir()] == [offer.directory.name]


async def test_skopeo_reads_what_we_pushed(real: RunningRegistry, tmp_path: Path) -> None:
    target = parse_reference(f"{real.address}/ships/skopeo:1.0.0")
    async with web_client(real.tls) as web:
        pushed = await push_image(client(web, real), target, release_image("1.0.0"))
    certificates = tmp_path / "certs"
    certificates.mkdir()
    (certificates / "ca.crt").write_bytes(real.tls.ca.read_bytes())
    options = (f"--authfile={real.secret}", f"--cert-dir={certificates}", "--format={{.Digest}}")
    done = await asyncio.to_thread(
        subprocess.run,
        ["skopeo", "inspect", *options, f"docker://{target}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout.strip() == pushed.digest


async def test_info_of_an_image_has_its_size_and_base(real: RunningRegistry) -> None:
    made = release_image("1.0.0", labels={BASE_LABEL: "sha256:" + "b" * 64})
    async with web_client(real.tls) as web:
        target = parse_reference(f"{real.address}/ships/info:1.0.0")
        pushed = await push_image(client(web, real), target, made)
    reach = str(real.secret), str(real.tls.ca)
    read = await asyncio.to_thread(read_from_registry, str(target), *reach)
    assert read.payload.release.version == "1.0.0"
    assert read.origin.digest == pushed.digest
    assert read.origin.size == sum(layer.size for layer in made.manifest.layers)
    assert read.origin.base == "sha256:" + "b" * 64


async def test_a_signature_is_found_beside_the_image(real: RunningRegistry, tmp_path: Path) -> None:
    target = parse_reference(f"{real.address}/ships/signed:1.0.0")
    key = new_key()
    known = verification_key(public_pem(key))
    async with web_client(real.tls) as web:
        registry = client(web, real)
        pushed = await push_image(registry, target, release_image("1.0.0"))
        with pytest.raises(NotVerified, match="it has no signature"):
            await fetch_release(registry, pushed, ReleaseStore(tmp_path / FETCHED), known)
        assert read_releases(tmp_path).fetched == ()
        signature = signatures_of(pushed.name, pushed.digest, key)
        await push_image(registry, target.tagged(signature_tag(pushed.digest)), signature)
        found = await fetch_release(registry, pushed, ReleaseStore(tmp_path / FETCHED), known)
    assert found.verified_by == known.identifier
    (offer,) = read_releases(tmp_path).fetched
    assert offer.verified_by == known.identifier


async def test_without_or_with_wrong_credentials(real: RunningRegistry, tmp_path: Path) -> None:
    target = parse_reference(f"{real.address}/ships/quarterdeck:1.0.0")
    wrong = read_pull_secret(str(pull_secret(tmp_path, real.address, "white-pearl")))
    async with web_client(real.tls) as web:
        with pytest.raises(NotAuthorized, match="add an entry for 127"):
            await Registry(web).manifest(target)
        with pytest.raises(NotAuthorized, match="refuses the pull secret's credentials"):
            await Registry(web, credentials=wrong).manifest(target)


async def test_an_image_that_is_not_there(real: RunningRegistry) -> None:
    async with web_client(real.tls) as web:
        with pytest.raises(ImageNotFound, match="push it, or correct the reference"):
            await client(web, real).manifest(parse_reference(f"{real.address}/ships/none:1"))


async def test_a_registry_whose_authority_is_not_trusted(real: RunningRegistry) -> None:
    async with web_client(None) as web:
        with pytest.raises(RegistryUnreachable, match="add its authority to the CA bundle"):
            await client(web, real).manifest(parse_reference(f"{real.address}/ships/q:1"))


async def test_a_mirror_serves_digests_and_not_tags(real: RunningRegistry) -> None:
    """The registry itself is away, and what it named comes from the mirror."""
    target = parse_reference(f"{real.address}/copies/quarterdeck:1.0.0")
    source = parse_reference("127.0.0.1:1/quarterdeck:1.0.0")
    mirrors = parse_mirrors(f"127.0.0.1:1={real.address}/copies")
    async with web_client(real.tls) as web:
        pushed = await push_image(client(web, real), target, release_image("1.0.0"))
        credentials = read_pull_secret(str(real.secret))
        registry = Registry(web, credentials=credentials, mirrors=mirrors)
        found = await registry.manifest(source.at(pushed.digest))
        assert digest_of(found.data) == pushed.digest
        with pytest.raises(RegistryUnreachable):
            await registry.manifest(source)


async def test_credentials_of_one_registry_are_not_sent_to_another(real: RunningRegistry) -> None:
    credentials = RegistryCredentials({"other.test": "b3RoZXI6c2VjcmV0"})
    async with web_client(real.tls) as web:
        with pytest.raises(NotAuthorized, match="asks for credentials"):
            await Registry(web, credentials=credentials).manifest(
                parse_reference(f"{real.address}/ships/q:1")
            )
