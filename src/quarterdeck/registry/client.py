"""Reads and writes manifests and blobs of a registry (OCI distribution specification 1.1).

Each manifest and blob that is asked for by its digest is checked against it, while it streams; a
blob goes to disk in pieces. Limits of size and time hold for every request. A registry that is busy
is asked again when it wants to be, unless all waits together take more than `MAX_WAIT` seconds.
Content that may come from mirrors is asked of each place in turn, and each has its share of the
time: a mirror that sends a byte at a time does not use up that of the registry itself.
"""

import asyncio
import hashlib
import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode, urlsplit

import msgspec

from quarterdeck.log import get_logger
from quarterdeck.oci.model import INDEXES, MANIFESTS, MAX_MANIFEST, is_digest
from quarterdeck.registry.credentials import (
    BearerChallenge,
    RegistryCredentials,
    bearer_challenge,
)
from quarterdeck.registry.errors import (
    ContentInvalid,
    ImageNotFound,
    NotAuthorized,
    RegistryBusy,
    RegistryError,
    RegistryUnreachable,
    everywhere,
)
from quarterdeck.registry.mirrors import Mirror, places
from quarterdeck.registry.reference import Reference
from quarterdeck.web import (
    BUSY,
    Answer,
    TooLarge,
    Web,
    WebError,
    is_address,
    origin,
    redirected,
    retry_after,
    shown,
)

log = get_logger("registry")

MAX_BLOB = 512 << 20
"""Bytes of a blob. Our largest layer has 40 MB."""
MAX_SMALL_BLOB = 1 << 20
MAX_TOKEN = 1 << 20
BLOB_LIMIT = 600.0
"""Seconds for one blob, of all places together."""
REQUEST_LIMIT = 60.0
"""Seconds for any other request, of all places together."""
MAX_WAIT = 30.0
"""The most seconds that one request waits for a busy registry; the caller may come back later."""

_ACCEPT = ", ".join((*MANIFESTS, *INDEXES))


class StoredManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest as the registry has it."""

    digest: str
    media_type: str
    data: bytes


class _Token(msgspec.Struct):
    token: str = ""
    access_token: str = ""


class Registry:
    """A client for all registries: `Reference`s name the registry."""

    def __init__(
        self,
        web: Web,
        *,
        credentials: RegistryCredentials | None = None,
        mirrors: tuple[Mirror, ...] = (),
        max_wait: float = MAX_WAIT,
        blob_limit: float = BLOB_LIMIT,
        request_limit: float = REQUEST_LIMIT,
    ) -> None:
        self._web = web
        self._credentials = credentials or RegistryCredentials()
        self._mirrors = mirrors
        self._max_wait = max_wait
        self._blob_limit = blob_limit
        self._request_limit = request_limit
        self._authorizations: dict[tuple[str, str, bool], str] = {}

    def places(self, image: Reference) -> tuple[Reference, ...]:
        """Where an image may be: its mirrors in their order, then its own registry."""
        return places(image, self._mirrors)

    async def manifest(self, image: Reference) -> StoredManifest:
        """The manifest of an image, checked against its digest if it is named by one.

        Mirrors are asked for a digest, and never for a tag.
        """
        asked = self.places(image) if image.digest else (image,)
        failed: list[RegistryError] = []
        for place in asked:
            try:
                return await self._manifest(place, self._request_limit / len(asked))
            except RegistryError as error:
                if place is not asked[-1]:
                    log.info("manifest not read, next place", image=str(place), error=str(error))
                failed.append(error)
        raise everywhere(failed)

    async def blob(self, image: Reference, digest: str, size: int, into: Path) -> None:
        """Write a blob of this image's repository to a file, checked against digest and size.

        If the blob is not right, RegistryError, and the file is not to be used.
        """
        await self._read_blob(image, digest, size, lambda: into.open("wb"), self._blob_limit)

    async def small_blob(self, image: Reference, digest: str, size: int) -> bytes:
        """A blob in memory, checked against digest and size."""
        buffers: list[io.BytesIO] = []

        def new() -> io.BytesIO:
            buffers.append(_Kept())
            return buffers[-1]

        if size > MAX_SMALL_BLOB:
            raise ContentInvalid(f"{image.name}: a blob of {size} bytes", _PUSH_AGAIN)
        await self._read_blob(image, digest, size, new, self._request_limit)
        return buffers[-1].getvalue()

    async def _read_blob(
        self, image: Reference, digest: str, size: int, sink: Callable[[], IO[bytes]], limit: float
    ) -> None:
        """Read a blob into a new sink per place, until one place has the right content."""
        if not is_digest(digest) or not 0 <= size <= MAX_BLOB:
            raise ContentInvalid(
                f"{image.name}: a blob {digest[:80]!r} of {size} bytes",
                f"push an image with SHA-256 digests and blobs of at most {MAX_BLOB >> 20} MiB",
            )
        asked = self.places(image.at(digest))
        failed: list[RegistryError] = []
        for place in asked:
            try:
                with sink() as file:
                    await self._blob(place, size, file, limit / len(asked))
                return
            except RegistryError as error:
                if place is not asked[-1]:
                    log.info("blob not read, next place", image=str(place), error=str(error))
                failed.append(error)
        raise everywhere(failed)

    async def has_blob(self, image: Reference, digest: str) -> bool:
        """Whether the registry has a blob in this image's repository."""
        async with (
            self._limited(image, self._request_limit),
            self._ask("HEAD", image, f"blobs/{digest}", write=True) as answer,
        ):
            return answer.status == 200

    async def push_blob(self, image: Reference, content: bytes | Path) -> str:
        """Store a blob in this image's repository, if it is not there; return its digest."""
        digest = await asyncio.to_thread(_digest_of, content)
        if await self.has_blob(image, digest):
            return digest
        async with self._limited(image, self._blob_limit):
            async with self._ask("POST", image, "blobs/uploads/", write=True) as answer:
                await self._check(answer, image, (202,))
                location = redirected(answer.url, answer.headers.get("Location", ""))
            separator = "&" if urlsplit(location).query else "?"
            url = f"{location}{separator}{urlencode({'digest': digest})}"
            same = origin(url) == origin(answer.url)
            held = self._authorizations.get((image.registry, image.repository, True), "")
            # A blob is read again for each try, so it is a file or bytes, never a stream.
            body: Any = content if isinstance(content, bytes) else content.open("rb")
            headers = {"Content-Type": "application/octet-stream"}
            async with self._web.request(
                "PUT", url, headers=headers, authorization=held if same else "", data=body
            ) as stored:
                await self._check(stored, image, (201,))
        return digest

    async def push_manifest(self, image: Reference, data: bytes, media_type: str) -> str:
        """Store a manifest under the image's tag, or under its digest; return its digest."""
        digest = _digest_of(data)
        name = image.tag or digest
        async with (
            self._limited(image, self._request_limit),
            self._ask(
                "PUT",
                image,
                f"manifests/{name}",
                write=True,
                headers={"Content-Type": media_type},
                data=data,
            ) as answer,
        ):
            await self._check(answer, image, (201,))
        return digest

    async def _manifest(self, image: Reference, limit: float) -> StoredManifest:
        name = image.digest or image.tag
        try:
            async with (
                self._limited(image, limit),
                self._ask("GET", image, f"manifests/{name}", headers={"Accept": _ACCEPT}) as answer,
            ):
                await self._check(answer, image, (200,))
                data = await answer.read(MAX_MANIFEST)
                media_type = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        except TooLarge as error:
            raise ContentInvalid(
                f"{image}: its manifest is larger than {MAX_MANIFEST >> 20} MiB",
                "this is no release image; name another one",
            ) from error
        digest = _digest_of(data)
        if image.digest and digest != image.digest:
            raise _wrong_digest(str(image), digest)
        return StoredManifest(digest=digest, media_type=media_type, data=data)

    async def _blob(self, blob: Reference, size: int, file: IO[bytes], limit: float) -> None:
        hashed, count = hashlib.sha256(), 0
        try:
            async with (
                self._limited(blob, limit),
                self._ask("GET", blob, f"blobs/{blob.digest}") as answer,
            ):
                await self._check(answer, blob, (200,))
                async for chunk in answer.chunks(size):
                    hashed.update(chunk)
                    file.write(chunk)
                    count += len(chunk)
        except TooLarge as error:
            raise ContentInvalid(
                f"{blob}: more than the {size} bytes that the manifest says", _PUSH_AGAIN
            ) from error
        if count < size:
            raise ContentInvalid(f"{blob}: only {count} of {size} bytes", _PUSH_AGAIN)
        digest = f"sha256:{hashed.hexdigest()}"
        if digest != blob.digest:
            raise _wrong_digest(str(blob), digest)

    @asynccontextmanager
    async def _limited(self, image: Reference, seconds: float) -> AsyncIterator[None]:
        """Turn the errors of the way to the registry into ours, with a limit of time."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TooLarge:
            raise
        except WebError as error:
            raise RegistryUnreachable(f"{image}: {error.message}", error.remedy) from error
        except TimeoutError as error:
            raise RegistryUnreachable(
                f"{image}: no whole answer in {seconds:.0f} seconds",
                "check the registry and the way to it",
            ) from error

    @asynccontextmanager
    async def _ask(
        self,
        method: str,
        image: Reference,
        path: str,
        *,
        write: bool = False,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> AsyncIterator[Answer]:
        """The answer of the registry, after its challenge is met; a busy one is asked again."""
        url = f"https://{image.registry}/v2/{image.repository}/{path}"
        key = (image.registry, image.repository, write)
        challenged, waited, pause = False, 0.0, 1.0
        while True:
            async with self._web.request(
                method,
                url,
                headers=headers,
                authorization=self._authorizations.get(key, ""),
                data=data,
            ) as answer:
                # A host that was redirected to does not get our credentials, whatever it asks.
                ours = origin(answer.url) == origin(url)
                if answer.status in BUSY:
                    asked = retry_after(answer.headers)
                elif answer.status == 401 and ours and not challenged:
                    challenges = answer.every("WWW-Authenticate")
                else:
                    yield answer
                    return
            if answer.status == 401:
                challenged = True
                self._authorizations[key] = await self._authorize(image, challenges)
                continue
            wait, pause = max(asked, pause), 2 * pause
            if waited + wait > self._max_wait:
                raise _busy(image, answer.status, asked)
            log.info("registry is busy", image=str(image), seconds=wait)
            await asyncio.sleep(wait)
            waited += wait

    async def _authorize(self, image: Reference, headers: Sequence[str]) -> str:
        """The authorization that meets one of the challenges of the registry."""
        basic = self._credentials.basic(image.registry, image.repository)
        for challenge in filter(None, map(bearer_challenge, headers)):
            return await self._token(image, challenge, basic)
        if not basic or not any(header.lower().startswith("basic") for header in headers):
            raise _not_authorized(image, 401, has_credentials=bool(basic))
        return basic

    async def _token(self, image: Reference, challenge: BearerChallenge, basic: str) -> str:
        if not challenge.realm.startswith("https://") or not is_address(challenge.realm):
            raise NotAuthorized(
                f"{image}: the registry sends us for a token to {shown(challenge.realm)!r}",
                "let it name an https address",
            )
        asked = {"service": challenge.service, "scope": challenge.scope}
        query = urlencode({name: value for name, value in asked.items() if value})
        separator = "&" if urlsplit(challenge.realm).query else "?"
        url = f"{challenge.realm}{separator}{query}" if query else challenge.realm
        async with self._web.request("GET", url, authorization=basic) as answer:
            if answer.status in BUSY:
                raise _busy(image, answer.status, retry_after(answer.headers), "its token service")
            if answer.status >= 500:
                raise RegistryUnreachable(
                    f"{image}: {shown(challenge.realm)} answers with status {answer.status}",
                    "look at the log of the registry's token service",
                )
            if answer.status != 200:
                raise _not_authorized(image, answer.status, has_credentials=bool(basic))
            data = await answer.read(MAX_TOKEN)
        try:
            found = msgspec.json.decode(data, type=_Token)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise NotAuthorized(
                f"{image}: {shown(challenge.realm)} answers without a token",
                "check the registry's token service",
            ) from error
        token = found.token or found.access_token
        if not token.isascii() or not token.isprintable():
            raise NotAuthorized(f"{image}: a token that is no text", "check the token service")
        return f"Bearer {token}"

    async def _check(self, answer: Answer, image: Reference, wanted: tuple[int, ...]) -> None:
        if answer.status in wanted:
            return
        if answer.status in (401, 403):
            has = bool(self._credentials.basic(image.registry, image.repository))
            raise _not_authorized(image, answer.status, has_credentials=has)
        if answer.status == 404:
            raise ImageNotFound(
                f"{image}: the registry has no such image or blob",
                "push it, or correct the reference",
            )
        raise RegistryUnreachable(
            f"{image}: the registry answers with status {answer.status}",
            "look at the registry's log",
        )


class _Kept(io.BytesIO):
    """Bytes that are still there after the end of a `with`."""

    def close(self) -> None:
        """Keep the bytes."""


_PUSH_AGAIN = "the registry's copy is damaged: push the image again, or use another mirror"


def _digest_of(content: bytes | Path) -> str:
    if isinstance(content, bytes):
        return f"sha256:{hashlib.sha256(content).hexdigest()}"
    with content.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _wrong_digest(asked: str, got: str) -> ContentInvalid:
    return ContentInvalid(f"{asked}: the registry sends other content, {got}", _PUSH_AGAIN)


def _busy(
    image: Reference, status: int, again_in: float, who: str = "the registry"
) -> RegistryBusy:
    asks = f" and asks to come back in {again_in:.0f} seconds" if again_in else ""
    return RegistryBusy(
        f"{image}: {who} is busy (status {status}){asks}",
        "wait, or name a mirror that has the image",
        again_in=again_in,
    )


def _not_authorized(image: Reference, status: int, *, has_credentials: bool) -> NotAuthorized:
    if has_credentials:
        return NotAuthorized(
            f"{image}: the registry refuses the pull secret's credentials (status {status})",
            f"correct the pull secret's entry for {image.registry}, or its rights",
        )
    return NotAuthorized(
        f"{image}: the registry asks for credentials (status {status})",
        f"add an entry for {image.registry} to the pull secret (--pull-secret)",
    )
