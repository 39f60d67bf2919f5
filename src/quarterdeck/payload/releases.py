"""The available releases: a directory with one payload per version.

Listing them reads only their `release-metadata`, so that a release with a broken manifest or broken
metadata does not hide the others. `load_release` loads a payload when it is needed. The names of
the directories have no meaning; the metadata has the facts:

    version: 1.1.0                      its version
    previous: [1.0.0, 1.0.1]            the versions that can update to it, up or down
    image: registry/quarterdeck:1.1.0   the release's image; `quarterdeck:<version>` if absent
    url: https://...                    its documentation; may be absent

Releases that were fetched from a registry lie in the hidden directory `.fetched`, each in a
directory that is named by its digest. Their image is where they came from, whatever their metadata
says; the file `release-image` has it.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from quarterdeck.api.config_v1 import Release
from quarterdeck.payload.files import (
    RELEASE_METADATA,
    list_files,
    printable,
    read_files,
    read_regular,
)
from quarterdeck.payload.images import is_image
from quarterdeck.payload.load import load_payload
from quarterdeck.payload.model import (
    KnownRelease,
    Payload,
    PayloadError,
    PayloadProblem,
    ReleaseMetadata,
)
from quarterdeck.payload.seal import SUMS
from quarterdeck.strict_yaml import decode_yaml
from quarterdeck.strict_yaml.documents import Document, Refusal
from quarterdeck.versions import Version, parse_version

MAX_RELEASES = 1000
MAX_METADATA = 64 << 10
FETCHED = ".fetched"
"""The directory of fetched releases, within the directory of releases."""
RELEASE_IMAGE = "release-image"
METADATA_KIND = "cincinnati-metadata-v0"
"""What the format calls itself; not asked for when it is read."""
LAYOUT = "name a directory that holds one directory per release"


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """An available release, from its metadata."""

    version: Version
    release: Release
    """The release as in ClusterVersion's status."""
    previous: frozenset[str]
    """The versions that can update to it."""
    directory: Path
    digest: str = ""
    """The digest of the image that it was fetched from; empty for one of the directory."""
    verified_by: str = ""
    """The identifier of the key that verified it; empty if none did."""


class FetchedImage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a fetched release came from: the content of its `release-image`."""

    image: str
    """The image by its digest."""
    verified_by: str = ""


class Releases(msgspec.Struct, frozen=True, kw_only=True):
    """All available releases, newest first, and the problems of the others."""

    offers: tuple[Offer, ...] = ()
    fetched: tuple[Offer, ...] = ()
    """The releases that were fetched from registries; they are kept, not offered."""
    problems: tuple[PayloadProblem, ...] = ()
    directory: str = ""
    """The directory that was read, as text to show."""

    @property
    def place(self) -> str:
        """Where they are, for a message: the directory, and the option that names it."""
        return f"{self.directory} (--releases)" if self.directory else "the releases directory"

    def by_version(self, version: str) -> Offer | None:
        """The release of this version; one of the directory before a fetched one."""
        every = (*self.offers, *self.fetched)
        return next((o for o in every if o.release.version == version), None)

    def by_digest(self, digest: str) -> Offer | None:
        """The release that was fetched from the image of this digest."""
        return next((o for o in self.fetched if digest and o.digest == digest), None)

    def by_image(self, image: str) -> Offer | None:
        """The newest release with this image."""
        return next((o for o in self.offers if o.release.image == image), None)

    def reachable(self, running: Iterable[str]) -> tuple[Offer, ...]:
        """The releases above all of these versions that list each of them, newest first."""
        versions = tuple(running)
        parsed = tuple(parse_version(version) for version in versions)
        return tuple(
            offer
            for offer in self.offers
            if versions
            and offer.previous.issuperset(versions)
            and all(version is not None and version < offer.version for version in parsed)
        )


def read_releases(root: Path, fetched: Path | None = None) -> Releases:
    """The releases in the directory, and those that were fetched."""
    offers, problems = [], []
    for found in _read_each(root):
        if isinstance(found, Offer):
            offers.append(found)
        else:
            problems.append(found)
    counts = Counter(offer.release.version for offer in offers)
    problems += [_twice(offer) for offer in offers if counts[offer.release.version] > 1]
    unique = [offer for offer in offers if counts[offer.release.version] == 1]
    unique.sort(key=lambda offer: offer.version, reverse=True)
    return Releases(
        offers=tuple(unique),
        fetched=read_fetched(fetched or root / FETCHED),
        problems=tuple(problems),
        directory=printable(str(root)),
    )


def read_fetched(root: Path) -> tuple[Offer, ...]:
    """The releases that were fetched, newest first; one that is not whole is not there."""
    try:
        directories = sorted(entry for entry in root.iterdir() if entry.name.startswith("sha256-"))
    except OSError:
        return ()
    found = [fetched_release(directory) for directory in directories[:MAX_RELEASES]]
    return tuple(sorted((one for one in found if one), key=lambda one: one.version, reverse=True))


def with_own(known: Releases, directory: Path, image: str) -> Releases:
    """The releases with the one in the operator's own image, which is known by its digest.

    A fetched copy of it comes first: what verified that is known.
    """
    own = _read_one(directory)
    if isinstance(own, PayloadProblem):
        return msgspec.structs.replace(known, problems=(*known.problems, own))
    digest = image.rpartition("@")[2] if "@" in image else ""
    if image:
        release = msgspec.structs.replace(own.release, image=image)
        own = msgspec.structs.replace(own, release=release, digest=digest)
    if digest:
        is_fetched = any(offer.digest == digest for offer in known.fetched)
        fetched = (*known.fetched, own) if is_fetched else (own, *known.fetched)
        return msgspec.structs.replace(known, fetched=fetched)
    if any(offer.release.version == own.release.version for offer in known.offers):
        return known
    offers = sorted((own, *known.offers), key=lambda offer: offer.version, reverse=True)
    return msgspec.structs.replace(known, offers=tuple(offers))


def check_metadata(directory: Path) -> None:
    """Refuse a directory that is no release, by its metadata; PayloadError says why."""
    found = _read_one(directory)
    if isinstance(found, PayloadProblem):
        raise PayloadError((msgspec.structs.replace(found, file=RELEASE_METADATA),))


def fetched_release(directory: Path) -> Offer | None:
    """The release that was fetched into a directory; None if it cannot be read."""
    try:
        data = read_regular(directory / RELEASE_IMAGE, MAX_METADATA)
        facts = msgspec.json.decode(data, type=FetchedImage)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    digest = directory.name.replace("-", ":", 1)
    offer = _read_one(directory)
    if not isinstance(offer, Offer) or facts.image.rpartition("@")[2] != digest:
        return None
    return msgspec.structs.replace(
        offer,
        release=msgspec.structs.replace(offer.release, image=facts.image),
        digest=digest,
        verified_by=facts.verified_by,
    )


def load_release(offer: Offer, profile: str) -> Payload:
    """The payload of a sealed release; PayloadError, with every problem, if it is not intact."""
    release = KnownRelease(version=offer.release.version, image=offer.release.image)
    return load_payload(offer.directory, release=release, profile=profile, sealed=True)


def fingerprint(offer: Offer) -> str:
    """A hash that changes when files of the release change: of their names, sizes and times.

    The inode's change time is included, because nobody can set it back.
    """
    facts = [offer.release.version, offer.release.image]
    files = [(source.file, source.path) for source in list_files([offer.directory]).sources]
    for file, path in [*files, (SUMS, offer.directory / SUMS)]:
        try:
            stat = path.stat()
        except OSError:
            continue  # loading reports the problem
        facts.append(f"{file}:{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}")
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def version_hash(payload: Payload) -> str:
    """The value of `status.versionHash`: a hash of all objects of the payload."""
    digest = hashlib.sha256()
    for manifest in payload.manifests:
        digest.update(msgspec.json.encode(manifest.object, order="deterministic"))
    return digest.hexdigest()[:16]


def metadata_text(metadata: ReleaseMetadata) -> str:
    """What a payload's `release-metadata` has to be to say this."""
    said = {name: value for name, value in msgspec.to_builtins(metadata).items() if value}
    text = msgspec.json.encode({"kind": METADATA_KIND, **said})
    return msgspec.json.format(text, indent=2).decode() + "\n"


def _read_each(root: Path) -> Iterator[Offer | PayloadProblem]:
    try:
        directories = sorted(
            entry for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith(".")
        )
    except OSError as error:
        reason = error.strerror or str(error)
        yield PayloadProblem(
            file=printable(str(root)), message=f"cannot be read: {reason}", remedy=LAYOUT
        )
        return
    if not directories:
        yield PayloadProblem(file=printable(str(root)), message="no releases in it", remedy=LAYOUT)
    if len(directories) > MAX_RELEASES:
        yield PayloadProblem(
            file=printable(str(root)),
            message=f"more than {MAX_RELEASES} directories",
            remedy="remove releases that nobody updates to",
        )
        return
    for directory in directories:
        yield _read_one(directory)


def releases_in(directory: Path) -> list[str]:
    """The names of the releases in a directory that is no release itself."""
    try:
        if (directory / RELEASE_METADATA).exists():
            return []
        return sorted(
            entry.name for entry in directory.iterdir() if (entry / RELEASE_METADATA).is_file()
        )
    except OSError:
        return []


def _read_one(directory: Path) -> Offer | PayloadProblem:
    name = _metadata_name(directory)
    sources = [
        source
        for source in list_files([directory]).sources
        if source.name == RELEASE_METADATA and not source.directory
    ]
    for _, data in read_files(sources):
        if isinstance(data, PayloadProblem):
            return msgspec.structs.replace(data, file=name)
        if len(data) > MAX_METADATA:
            return PayloadProblem(
                file=name,
                message=f"larger than {MAX_METADATA >> 10} KiB",
                remedy="list fewer previous versions",
            )
        return _offer(directory, name, data.decode("utf-8-sig", "replace"))
    return PayloadProblem(
        file=name,
        message="not there, or not a regular file",
        remedy="write one with the release's version",
    )


def _offer(directory: Path, name: str, text: str) -> Offer | PayloadProblem:
    documents = list(decode_yaml(text))
    if len(documents) != 1:
        return PayloadProblem(
            file=name, message=f"{len(documents)} documents", remedy="write exactly one"
        )
    match documents[0]:
        case Refusal(number, line, message, remedy):
            return PayloadProblem(
                file=name, document=number, line=line, message=message, remedy=remedy
            )
        case Document(number, line, value):
            try:
                metadata = msgspec.convert(value, ReleaseMetadata)
            except msgspec.ValidationError as error:
                return PayloadProblem(
                    file=name, document=number, line=line, message=str(error), remedy="correct it"
                )
            return _checked(directory, name, line, metadata)


def _checked(
    directory: Path, name: str, line: int, metadata: ReleaseMetadata
) -> Offer | PayloadProblem:
    parsed = parse_version(metadata.version)
    if parsed is None:
        return _no_version(name, line, "version", metadata.version)
    for version in metadata.previous:
        if parse_version(version) is None:
            return _no_version(name, line, "previous", version)
    image = metadata.image or f"quarterdeck:{metadata.version.replace('+', '_')}"
    if not is_image(image):
        return _bad_image(name, line, image)
    return Offer(
        version=parsed,
        release=Release(version=metadata.version, image=image, url=metadata.url or None),
        previous=frozenset(metadata.previous),
        directory=directory,
    )


def _bad_image(name: str, line: int, value: str) -> PayloadProblem:
    return PayloadProblem(
        file=name,
        document=1,
        line=line,
        message=f"image has {value[:60]!r}, which is no image reference",
        remedy="write one like registry.example.test/quarterdeck:1.2.3",
    )


def _no_version(name: str, line: int, field: str, value: str) -> PayloadProblem:
    return PayloadProblem(
        file=name,
        document=1,
        line=line,
        message=f"{field} has {value[:60]!r}, which is no semantic version",
        remedy="write one like 1.2.3",
    )


def _twice(offer: Offer) -> PayloadProblem:
    return PayloadProblem(
        file=_metadata_name(offer.directory),
        message=f"another directory has the version {offer.release.version} too",
        remedy="keep one of the two",
    )


def _metadata_name(directory: Path) -> str:
    return f"{printable(directory.name)}/{RELEASE_METADATA}"
