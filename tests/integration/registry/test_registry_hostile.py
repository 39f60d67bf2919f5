"""Registries that misbehave: each answer is refused with what to do, and nothing is left behind."""

import random
import resource
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from tarfile import CHRTYPE, LNKTYPE, SYMTYPE

import pytest
from tests.oci_bytes import entry
from tests.registry_process import Tls, pull_secret, web_client
from tests.release_images import (
    hostile_image,
    image_of_layer,
    new_key,
    public_pem,
    release_image,
    signatures_of,
    zeros_image,
)
from tests.scripted_registry import Handler, ScriptedRegistry, scripted_registry

import quarterdeck.registry.release_image as release_image_module
from quarterdeck.oci.layers import Image
from quarterdeck.oci.model import MAX_MANIFEST
from quarterdeck.oci.signature import signature_tag
from quarterdeck.payload.releases import FETCHED, read_releases
from quarterdeck.registry.client import Registry
from quarterdeck.registry.credentials import read_pull_secret
from quarterdeck.registry.errors import (
    ContentInvalid,
    NotAuthorized,
    RegistryBusy,
    RegistryError,
    RegistryUnreachable,
)
from quarterdeck.registry.mirrors import parse_mirrors
from quarterdeck.registry.reference import parse_reference
from quarterdeck.registry.release_image import (
    Fetched,
    NotVerified,
    StorageFailed,
    VerificationKey,
    fetch_release,
    verification_key,
)
from quarterdeck.registry.release_store import MAX_KEPT, ReleaseStore
from quarterdeck.web import Web


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    return Tls(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def scripted(tls: Tls) -> Iterator[ScriptedRegistry]:
    with scripted_registry(tls) as one:
        yield one


class Client:
    """The client, with a directory of releases and a pull secret for the registry."""

    def __init__(self, web: Web, scripted: ScriptedRegistry, directory: Path) -> None:
        secret = read_pull_secret(str(pull_secret(directory, scripted.address)))
        self.registry = Registry(
            web, credentials=secret, max_wait=2, blob_limit=20, request_limit=20
        )
        self.web = web
        self.releases = directory / "releases"
        self.releases.mkdir()
        self.store = ReleaseStore(self.releases / FETCHED)

    async def fetch(
        self, image: str, key: VerificationKey | None = None, *, force: bool = False
    ) -> Fetched:
        return await fetch_release(
            self.registry, parse_reference(image), self.store, key, force=force
        )

    def left(self) -> list[str]:
        """What lies in the store."""
        return [str(path) for path in self.store.root.rglob("*")]


@pytest.fixture
async def client(scripted: ScriptedRegistry, tmp_path: Path) -> AsyncIterator[Client]:
    async with web_client(scripted.tls, connect_timeout=5, read_timeout=1) as web:
        yield Client(web, scripted, tmp_path)


async def test_what_behaves_is_fetched(scripted: ScriptedRegistry, client: Client) -> None:
    """Only the last layer is asked for."""
    image = release_image("1.0.0")
    found = await client.fetch(scripted.put("q", image))
    assert found.digest == image.descriptor.digest
    blobs = [one.path for one in scripted.asked if "/blobs/" in one.path]
    assert blobs == [f"/v2/q/blobs/{image.manifest.layers[-1].digest}"]


async def refused(client: Client, image: str, told: str) -> RegistryError:
    with pytest.raises(RegistryError, match=told) as seen:
        await client.fetch(image)
    assert seen.value.remedy
    assert client.left() == []
    assert read_releases(client.releases).fetched == ()
    return seen.value


async def test_another_manifest_than_the_digest_says(
    scripted: ScriptedRegistry, client: Client
) -> None:
    image = scripted.put("q", release_image("1.0.0"))
    other = release_image("6.6.6")
    path = f"/v2/q/manifests/{image.partition('@')[2]}"
    media_type, _ = scripted.stored[path]
    scripted.stored[path] = (media_type, bytes(other.blobs[other.descriptor.digest]))
    error = await refused(client, image, "the registry sends other content")
    assert isinstance(error, ContentInvalid)


async def test_another_layer_than_the_digest_says(
    scripted: ScriptedRegistry, client: Client
) -> None:
    image = release_image("1.0.0")
    reference = scripted.put("q", image)
    path = f"/v2/q/blobs/{image.manifest.layers[-1].digest}"
    media_type, data = scripted.stored[path]
    scripted.stored[path] = (media_type, bytes(len(data)))
    await refused(client, reference, "the registry sends other content")


async def test_a_truncated_layer(scripted: ScriptedRegistry, client: Client) -> None:
    image = release_image("1.0.0")
    reference = scripted.put("q", image)
    path = f"/v2/q/blobs/{image.manifest.layers[-1].digest}"
    data = scripted.stored[path][1]

    def cut(handler: Handler) -> None:
        handler.reply(200, data[:20], **{"Content-Length": str(len(data))})
        handler.close_connection = True

    scripted.scripts[path] = cut
    await refused(client, reference, "the answer ended too early")
    scripted.scripts[path] = lambda handler: handler.reply(200, data[:20])
    await refused(client, reference, f"only 20 of {len(data)} bytes")
    scripted.scripts[path] = lambda handler: handler.reply(200, data + b"more")
    await refused(client, reference, "more than the")


async def test_a_layer_of_a_gigabyte_of_zeros(scripted: ScriptedRegistry, client: Client) -> None:
    """One megabyte that unpacks to a gigabyte: neither memory nor disk gets it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await refused(client, scripted.put("q", zeros_image(1 << 30)), "larger than 4 MiB")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000, f"{grown} kB more"


@pytest.mark.parametrize(
    ("image", "told"),
    [
        pytest.param(
            hostile_image(entry("release-manifests/a.yaml", type=SYMTYPE, linkname="/etc/passwd")),
            "a symbolic link|a link",
            id="a link",
        ),
        pytest.param(
            hostile_image(entry("release-manifests/a.yaml", type=LNKTYPE, linkname="etc/passwd")),
            "link",
            id="a hard link",
        ),
        pytest.param(
            hostile_image(entry("release-manifests/a.yaml", type=CHRTYPE)),
            "device",
            id="a device",
        ),
        pytest.param(
            hostile_image(entry("release-manifests/../../a.yaml", b"x")),
            "leads out of the image",
            id="a path with ..",
        ),
        pytest.param(hostile_image(entry("/a.yaml", b"x")), "leads out", id="an absolute path"),
        pytest.param(image_of_layer(b"no archive" * 100), "nothing of it is", id="no archive"),
    ],
)
async def test_a_hostile_layer(
    scripted: ScriptedRegistry, client: Client, image: Image, told: str
) -> None:
    await refused(client, scripted.put("q", image), told)


async def test_a_release_whose_metadata_is_damaged_is_no_release(
    scripted: ScriptedRegistry, client: Client
) -> None:
    image = release_image("1.0.0", {"release-metadata": "{"})
    await refused(client, scripted.put("q", image), "release-metadata")


async def test_a_disk_that_takes_no_more_is_told_and_nothing_is_left(
    scripted: ScriptedRegistry, client: Client
) -> None:
    """A limit on the size of files stands for a full disk: a write fails in its middle."""
    noise = random.Random(0).randbytes(500_000).hex()
    image = scripted.put("q", release_image("1.0.0", {"0000_10_noise.yaml": noise}))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
    try:
        error = await refused(client, image, "the release cannot be written to")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(error, StorageFailed)
    assert "a directory with space" in error.remedy
    await client.fetch(image)


async def test_a_manifest_of_50_megabytes(scripted: ScriptedRegistry, client: Client) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    image = scripted.put_manifest("q", b" " * (50 << 20))
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    error = await refused(client, image, f"larger than {MAX_MANIFEST >> 20} MiB")
    assert "name another" in error.remedy
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 50_000, before


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"schemaVersion": 2}', b'{"schemaVersion":1}']
)
async def test_what_is_no_manifest(scripted: ScriptedRegistry, client: Client, data: bytes) -> None:
    await refused(client, scripted.put_manifest("q", data), "nothing of it is applied")


async def test_a_registry_that_is_away(scripted: ScriptedRegistry, client: Client) -> None:
    gone = f"127.0.0.1:1/q@sha256:{'a' * 64}"
    error = await refused(client, gone, "no connection")
    assert isinstance(error, RegistryUnreachable)


async def test_a_registry_that_says_nothing(scripted: ScriptedRegistry, client: Client) -> None:
    image = scripted.put("q", release_image("1.0.0"))
    scripted.scripts["manifests"] = lambda handler: handler.owner.quiet(10)
    await refused(client, image, "no answer in time")
    scripted.ended.set()


async def test_a_registry_that_sends_a_byte_at_a_time(
    scripted: ScriptedRegistry, client: Client
) -> None:
    """The time-out of the next byte never comes, that of the whole does."""
    image = scripted.put("q", release_image("1.0.0"))

    def drip(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            scripted.quiet(0.2)

    scripted.scripts["manifests"] = drip
    slow = Registry(client.registry._web, request_limit=2)
    with pytest.raises(RegistryUnreachable, match="no whole answer in 2 seconds"):
        await slow.manifest(parse_reference(image))
    scripted.ended.set()


@pytest.mark.parametrize("what", ["/manifests/", "/blobs/"])
async def test_a_slow_mirror_leaves_time_for_the_registry(
    scripted: ScriptedRegistry, client: Client, tls: Tls, what: str
) -> None:
    image = release_image("1.0.0")
    reference = scripted.put("q", image)
    with scripted_registry(tls) as mirror:
        mirror.put("q", image)

        def drip(handler: Handler) -> None:
            handler.send_response(200)
            handler.end_headers()
            while not mirror.ended.is_set():
                handler.wfile.write(b"x")
                mirror.quiet(0.2)

        mirror.scripts[what] = drip
        mirrors = parse_mirrors(f"{scripted.address}={mirror.address}")
        client.registry = Registry(client.web, mirrors=mirrors, blob_limit=4, request_limit=4)
        found = await client.fetch(reference)
    assert found.digest == image.descriptor.digest
    (asked,) = scripted.asked
    assert what in asked.path


async def test_one_of_several_challenges_is_met(scripted: ScriptedRegistry, client: Client) -> None:
    image = scripted.put("q", release_image("1.0.0"))

    def guarded(handler: Handler) -> None:
        if handler.headers.get("Authorization"):
            media_type, data = scripted.stored[handler.path]
            handler.reply(200, data, **{"Content-Type": media_type})
            return
        handler.send_response(401)
        for challenge in ("Negotiate", 'Basic realm="x"'):
            handler.send_header("WWW-Authenticate", challenge)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    scripted.scripts["/v2/"] = guarded
    await client.fetch(image)


async def test_401_for_good(scripted: ScriptedRegistry, client: Client) -> None:
    image = scripted.put("q", release_image("1.0.0"))
    challenge = {"WWW-Authenticate": 'Basic realm="x"'}
    scripted.scripts["manifests"] = lambda handler: handler.reply(401, b"", **challenge)
    error = await refused(client, image, "refuses the pull secret")
    assert isinstance(error, NotAuthorized)
    assert len(scripted.asked) == 2


async def test_a_token_is_asked_for_and_used(scripted: ScriptedRegistry, client: Client) -> None:
    image = scripted.put("q", release_image("1.0.0"))
    realm = f"https://{scripted.address}/token"
    scope = "repository:q:pull"

    def guarded(handler: Handler) -> None:
        if handler.headers.get("Authorization") == "Bearer t0ken":
            media_type, data = scripted.stored[handler.path]
            handler.reply(200, data, **{"Content-Type": media_type})
            return
        challenge = f'Bearer realm="{realm}",service="r",scope="{scope}"'
        handler.reply(401, b"", **{"WWW-Authenticate": challenge})

    scripted.scripts["/v2/"] = guarded
    scripted.scripts["/token"] = lambda handler: handler.reply(200, b'{"token": "t0ken"}')
    await client.fetch(image)
    (asked,) = [one for one in scripted.asked if one.path.startswith("/token")]
    assert asked.path == "/token?service=r&scope=repository%3Aq%3Apull"
    assert asked.authorization.startswith("Basic ")


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        (429, RegistryBusy, "its token service is busy .status 429. and asks to come back in 90"),
        (503, RegistryBusy, "its token service is busy"),
        (500, RegistryUnreachable, "/token answers with status 500; look at the log"),
        (403, NotAuthorized, "refuses the pull secret"),
    ],
)
async def test_a_token_service_that_gives_no_token(
    scripted: ScriptedRegistry,
    client: Client,
    status: int,
    error: type[RegistryError],
    told: str,
) -> None:
    """A service that is busy or broken says nothing about the pull secret."""
    image = scripted.put("q", release_image("1.0.0"))
    challenge = {"WWW-Authenticate": f'Bearer realm="https://{scripted.address}/token"'}
    scripted.scripts["/v2/"] = lambda handler: handler.reply(401, b"", **challenge)
    scripted.scripts["/token"] = partial(Handler.reply, status=status, Retry_After="90")
    seen = await refused(client, image, told)
    assert type(seen) is error
    if isinstance(seen, RegistryBusy):
        assert seen.again_in == 90


async def test_429_is_waited_for_but_not_for_long(
    scripted: ScriptedRegistry, client: Client
) -> None:
    """A wait that is longer than ours is the caller's, who learns how long it is."""
    image = scripted.put("q", release_image("1.0.0"))
    answers = iter([429])

    def busy(handler: Handler) -> None:
        if status := next(answers, 0):
            handler.reply(status, b"", **{"Retry-After": "1"})
            return
        media_type, data = scripted.stored[handler.path]
        handler.reply(200, data, **{"Content-Type": media_type})

    async def refused_after(requests: int, asked: float) -> None:
        scripted.asked.clear()
        with pytest.raises(RegistryBusy, match="wait, or name a mirror") as seen:
            await client.fetch(image)
        assert len(scripted.asked) == requests
        assert seen.value.again_in == asked

    scripted.scripts["manifests"] = lambda handler: handler.reply(
        503, b"", **{"Retry-After": "86400"}
    )
    await refused_after(1, 86400)
    scripted.scripts["manifests"] = lambda handler: handler.reply(429)
    await refused_after(2, 0)
    for odd in ("-1", "1e9", "tomorrow", "9" * 400, "٣"):
        header = odd.encode().decode("latin-1")
        scripted.scripts["manifests"] = partial(Handler.reply, status=429, Retry_After=header)
        client.registry._max_wait = 0.5
        await refused_after(1, 0)
    client.registry._max_wait = 2
    scripted.scripts["manifests"] = busy
    await client.fetch(image)


async def test_a_redirect_to_another_host_goes_without_credentials(
    scripted: ScriptedRegistry, client: Client, tls: Tls
) -> None:
    image = release_image("1.0.0")
    reference = scripted.put("q", image)
    path = f"/v2/q/blobs/{image.manifest.layers[-1].digest}"
    challenge = {"WWW-Authenticate": 'Basic realm="x"'}
    with scripted_registry(tls) as storage:
        storage.stored["/bucket"] = scripted.stored[path]

        def redirect(handler: Handler) -> None:
            if not handler.headers.get("Authorization"):
                handler.reply(401, b"", **challenge)
            else:
                handler.reply(307, b"", Location=f"https://{storage.address}/bucket")

        scripted.scripts[path] = redirect
        await client.fetch(reference)
        assert [one.authorization for one in storage.asked] == [""]
        # And not when the other host asks for them, either.
        storage.scripts["/bucket"] = lambda handler: handler.reply(401, b"", **challenge)
        for kept in client.store.root.iterdir():
            (kept / "release-image").unlink()
        with pytest.raises(NotAuthorized):
            await client.fetch(reference)
        assert [one.authorization for one in storage.asked] == ["", ""]


async def test_a_redirect_out_of_tls_is_refused(
    scripted: ScriptedRegistry, client: Client, tls: Tls
) -> None:
    image = scripted.put("q", release_image("1.0.0"))
    with scripted_registry(tls, encrypted=False) as plain:
        target = f"http://{plain.address}/x"
        scripted.scripts["manifests"] = lambda handler: handler.reply(302, b"", Location=target)
        await refused(client, image, "not protected by TLS")
        assert plain.asked == []
    scripted.scripts["manifests"] = lambda handler: handler.reply(302, b"", Location=handler.path)
    await refused(client, image, "redirects more than 5 times")


async def test_a_push_does_not_leave_tls(
    scripted: ScriptedRegistry, client: Client, tls: Tls
) -> None:
    scripted.scripts["/blobs/sha256"] = lambda handler: handler.reply(404)
    with scripted_registry(tls, encrypted=False) as plain:
        target = f"http://{plain.address}/upload"
        scripted.scripts["/uploads/"] = lambda handler: handler.reply(202, b"", Location=target)
        with pytest.raises(RegistryUnreachable, match="not protected by TLS"):
            await client.registry.push_blob(parse_reference(f"{scripted.address}/q:1"), b"blob")
        assert plain.asked == []
    assert [one.method for one in scripted.asked] == ["HEAD", "POST"]


async def test_signatures(scripted: ScriptedRegistry, client: Client) -> None:
    """None, one of another key, one of another image: refused; the right one: fetched."""
    image = release_image("1.0.0")
    reference = scripted.put("q", image)
    digest = image.descriptor.digest
    key, other = new_key(), new_key()
    known = verification_key(public_pem(key))
    tag = signature_tag(digest)

    async def unverified(told: str) -> None:
        with pytest.raises(NotVerified, match=told) as seen:
            await client.fetch(reference, known)
        assert "force" in seen.value.remedy
        assert client.left() == []

    await unverified("it has no signature")
    scripted.put("q", signatures_of("q", digest, other), tag)
    await unverified("a signature of another key")
    scripted.put("q", signatures_of("q", "sha256:" + "a" * 64, key), tag)
    await unverified("a signature of another image")
    scripted.put_manifest("q", b"[]", tag)
    await unverified("not verified")
    assert [one for one in scripted.asked if "layers" in one.path] == []

    forced = await client.fetch(reference, known, force=True)
    assert forced.verified_by == ""
    # What lies there already is verified later, without another fetch of the layer.
    scripted.put("q", signatures_of("q", digest, key), tag)
    assert (await client.fetch(reference, known)).verified_by == known.identifier
    layers = [one for one in scripted.asked if image.manifest.layers[-1].digest in one.path]
    assert len(layers) == 1


async def test_an_old_signature_of_a_mirror_does_not_hide_the_right_one(
    scripted: ScriptedRegistry, client: Client, tls: Tls
) -> None:
    image = release_image("1.0.0")
    reference = scripted.put("q", image)
    key = new_key()
    known = verification_key(public_pem(key))
    tag = signature_tag(image.descriptor.digest)
    with scripted_registry(tls) as mirror:
        mirror.put("q", signatures_of("q", image.descriptor.digest, new_key()), tag)
        client.registry = Registry(
            client.web,
            mirrors=parse_mirrors(f"{scripted.address}={mirror.address}"),
            max_wait=0.1,
        )
        with pytest.raises(NotVerified, match="it has no signature"):
            await client.fetch(reference, known)
        scripted.put("q", signatures_of("q", image.descriptor.digest, key), tag)
        assert (await client.fetch(reference, known)).verified_by == known.identifier
        assert [one.path for one in mirror.asked if tag in one.path]


async def test_a_mirror_that_sends_a_byte_at_a_time_leaves_time_for_the_registry(
    scripted: ScriptedRegistry, client: Client, tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was found to use up all the time, of the signatures and of the layer, at each try."""
    image = release_image("1.0.0")
    reference = scripted.put("q", image)
    key = new_key()
    known = verification_key(public_pem(key))
    tag = signature_tag(image.descriptor.digest)
    scripted.put("q", signatures_of("q", image.descriptor.digest, key), tag)
    monkeypatch.setattr(release_image_module, "SIGNATURES_LIMIT", 4)
    with scripted_registry(tls) as mirror:
        mirror.put("q", image)

        def drip(handler: Handler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(image.manifest.layers[-1].size))
            handler.end_headers()
            while not mirror.ended.is_set():
                handler.wfile.write(b"x")
                handler.wfile.flush()
                mirror.quiet(0.2)

        mirror.scripts |= {tag: drip, image.manifest.layers[-1].digest: drip}
        mirrors = parse_mirrors(f"{scripted.address}={mirror.address}")
        client.registry = Registry(client.web, mirrors=mirrors, blob_limit=4, request_limit=60)
        found = await client.fetch(reference, known)
        assert found.verified_by == known.identifier
        assert {tag, image.manifest.layers[-1].digest} <= {
            one.path.rpartition("/")[2] for one in mirror.asked
        }


async def test_what_no_place_has_is_told_with_what_each_says(
    scripted: ScriptedRegistry, client: Client
) -> None:
    """Without a way out only the mirror can be mended, and nothing was said of it."""
    image = release_image("1.0.0")
    challenge = {"WWW-Authenticate": 'Basic realm="x"'}
    scripted.scripts["/v2/"] = lambda handler: handler.reply(401, b"", **challenge)
    mirrors = parse_mirrors(f"127.0.0.1:1={scripted.address}")
    client.registry = Registry(client.web, mirrors=mirrors)
    place = f"127.0.0.1:1/q@{image.descriptor.digest}"
    error = await refused(client, place, "no connection")
    assert isinstance(error, RegistryUnreachable)
    assert f"its mirror: {scripted.address}/q@" in error.message
    assert "asks for credentials (status 401)" in error.message
    assert "add an entry" in error.remedy


async def test_the_store_stays_small(scripted: ScriptedRegistry, client: Client) -> None:
    digests = []
    for number in range(MAX_KEPT + 3):
        found = await client.fetch(scripted.put("q", release_image(f"1.0.{number}")))
        digests.append(found.digest)
        client.store.prune({digests[0], found.digest})
    kept = {offer.digest for offer in read_releases(client.releases).fetched}
    assert len(kept) == MAX_KEPT
    assert {digests[0], digests[-1]} <= kept


async def test_what_an_interrupted_fetch_left_is_removed(client: Client) -> None:
    part = client.store.begin()
    (part / "half").write_text("")
    client.store.clean()
    assert client.left() == []
