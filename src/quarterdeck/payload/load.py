"""Loads a payload from directories: its manifests in order, with placeholders replaced.

`read_payload` continues after a problem, so that it reports all at once; `load_payload` is for
callers that apply the payload, and refuses one with any problem.

A payload may be hostile. A few kilobytes of YAML stand for gigabytes if each of many documents has
aliases, so the values of all documents are counted, and reading ends where there are too many.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.payload.files import (
    IMAGE_REFERENCES,
    RELEASE_METADATA,
    Source,
    list_files,
    read_files,
)
from quarterdeck.payload.image_places import replace_plain_images
from quarterdeck.payload.images import is_one_word
from quarterdeck.payload.model import (
    PLACEHOLDER_VERSION,
    KnownRelease,
    Manifest,
    Payload,
    PayloadError,
    PayloadProblem,
    ReleaseMetadata,
)
from quarterdeck.payload.seal import Sealed, read_seal
from quarterdeck.payload.substitute import (
    OWN_COMPONENT,
    TemplateFault,
    image_pattern,
    render_template,
    replace_images,
    replace_versions,
)
from quarterdeck.strict_yaml import decode_json, decode_yaml
from quarterdeck.strict_yaml.documents import Document, Refusal

UNKNOWN_IMAGE = "release-image.invalid/not-known"
"""The value of `{{.ReleaseImage}}` if the release's image is not known."""

MAX_NODES = 2_000_000
"""The most values of a payload; each takes some hundred bytes. Large CRDs have 6,000."""
MAX_TEXT = 128 << 20
"""The most characters of all documents, aliases expanded."""
MAX_PROBLEMS = 1000
MAX_IMAGES = 2000
"""The most images in one `image-references`. All files are searched for each of them."""

_NAME = re.compile(r"0000_(?P<level>\d{1,9})_(?P<component>[^_]+)_")


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The readable part of a payload, and the problems of the rest."""

    payload: Payload
    problems: tuple[PayloadProblem, ...]


def load_payload(
    directory: Path, *, release: KnownRelease, profile: str, sealed: bool = False
) -> Payload:
    """The payload in a directory; PayloadError, with every problem, if there is one.

    With `sealed`, the files must match the payload's SHA256SUMS.
    """
    seal = None
    if sealed:
        sums = read_seal(directory)
        if isinstance(sums, PayloadProblem):
            raise PayloadError((sums,))
        seal = Sealed(sums)
    reading = read_payload([directory], release=release, profile=profile, seal=seal)
    if reading.problems:
        raise PayloadError(reading.problems)
    return reading.payload


def read_payload(
    directories: Sequence[Path],
    *,
    release: KnownRelease | None = None,
    profile: str = "",
    seal: Sealed | None = None,
) -> Reading:
    """The payload of all directories; `release` wins over their release metadata."""
    listing = list_files(directories)
    reader = _PayloadReader(release or KnownRelease(), profile, list(listing.problems))
    for source, data in read_files(sorted(listing.sources, key=_order)):
        if reader.ended:
            break
        if isinstance(data, PayloadProblem):
            reader.problems.append(data)
        elif seal and (problem := seal.problem_with(source.file, data)):
            reader.problems.append(problem)
        else:
            reader.read(source, data)
    # Missing files first: they may cause the other problems.
    missing = seal.missing() if seal and not reader.ended else ()
    problems = (*missing[:MAX_PROBLEMS], *reader.problems)
    return Reading(
        payload=Payload(
            release=reader.release,
            manifests=tuple(reader.manifests),
            references=reader.references,
            too_deep=listing.too_deep,
        ),
        problems=problems,
    )


def run_level_and_component(name: str) -> tuple[int | None, str]:
    """The run level and component in a file name; (None, "") if it has none."""
    match = _NAME.match(name)
    return (int(match["level"]), match["component"]) if match else (None, "")


def _order(source: Source) -> tuple[bool, bool, int, str, str, str]:
    # Image lists and metadata come first: the images and versions in manifests depend on them.
    is_manifest = source.name not in (IMAGE_REFERENCES, RELEASE_METADATA)
    level, component = run_level_and_component(source.name)
    return (is_manifest, level is None, level or 0, component, source.name, source.directory)


class _PayloadReader:
    def __init__(self, release: KnownRelease, profile: str, problems: list[PayloadProblem]) -> None:
        self.release = release
        self.problems = problems
        self.manifests: list[Manifest] = []
        self.references: dict[str, Mapping[str, str]] = {}
        self.ended = False
        """Whether the rest is not read: there are too many values or problems already."""
        self._given = release
        self._profile = profile
        self._nodes = 0
        self._text = 0
        self._images: dict[str, tuple[re.Pattern[str] | None, dict[str, str]]] = {}

    def read(self, source: Source, data: bytes) -> None:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            self._refuse(source, 1, line, "not UTF-8", "save the file as UTF-8")
            return
        if source.name == RELEASE_METADATA:
            self._read_metadata(source, text)
        elif source.name == IMAGE_REFERENCES:
            self._read_references(source, text)
        else:
            self._read_manifests(source, text)

    def _read_manifests(self, source: Source, text: str) -> None:
        run_level, component = run_level_and_component(source.name)
        if component == OWN_COMPONENT and "{{" in text:
            rendered = self._rendered(source, text)
            if rendered is None:
                return
            text = rendered
        pattern, images = self._images_of(source)
        text = replace_images(text, pattern, images)
        # Most files have no version to replace, so their objects need not be searched.
        version = self.release.version if PLACEHOLDER_VERSION in text else ""
        for document in self._documents(source, text):
            if (fault := _not_an_object(document.value)) is not None:
                self._refuse(source, document.number, document.line, *fault)
                continue
            self.manifests.append(
                Manifest(
                    file=source.file,
                    document=document.number,
                    line=document.line,
                    run_level=run_level,
                    component=component,
                    object=replace_versions(replace_plain_images(document.value, images), version),
                )
            )

    def _rendered(self, source: Source, text: str) -> str | None:
        """The text with its templates replaced; None, and a problem, if one is unknown."""
        fields = {
            "ReleaseImage": self.release.image or UNKNOWN_IMAGE,
            "ClusterProfile": self._profile,
        }
        match render_template(text, fields):
            case TemplateFault(line, template, known):
                use = " and ".join(f"{{{{.{name}}}}}" for name in known)
                self._refuse(
                    source,
                    _document_at(text, line),
                    line,
                    f"the template {template} is not known",
                    f'use only {use}, and write other braces as {{{{ "{{{{" }}}}',
                )
                return None
            case rendered:
                return rendered

    def _documents(self, source: Source, text: str) -> Iterator[Document]:
        decode: Callable[[str], Iterator[Document | Refusal]] = (
            decode_json if source.name.endswith(".json") else decode_yaml
        )
        for document in decode(text):
            match document:
                case Refusal(number, line, message, remedy):
                    self._refuse(source, number, line, message, remedy)
                case Document(value=None):
                    continue
                case Document(nodes=nodes, text=length):
                    self._nodes, self._text = self._nodes + nodes, self._text + length
                    if self._nodes > MAX_NODES or self._text > MAX_TEXT:
                        self._end(source, document)
                    else:
                        yield document
            if self.ended:
                return

    def _read_metadata(self, source: Source, text: str) -> None:
        for document in self._documents(source, text):
            try:
                metadata = msgspec.convert(document.value, ReleaseMetadata)
            except msgspec.ValidationError as error:
                self._refuse(source, document.number, document.line, str(error), "correct it")
                continue
            self.release = msgspec.structs.replace(
                self.release,
                version=self._given.version or metadata.version,
                previous=self._given.previous or metadata.previous,
            )

    def _read_references(self, source: Source, text: str) -> None:
        for document in self._documents(source, text):
            try:
                stream = msgspec.convert(document.value, _ImageStream)
            except msgspec.ValidationError as error:
                self._refuse(
                    source, document.number, document.line, str(error), "write an ImageStream"
                )
                continue
            if len(stream.spec.tags) > MAX_IMAGES:
                message = f"{len(stream.spec.tags)} images, more than {MAX_IMAGES}"
                self._refuse(source, document.number, document.line, message, "remove the others")
                continue
            # They are put into the text of manifests, where a line break would add a line.
            if bad := [tag for tag in stream.spec.tags if not is_one_word(tag.source.name)]:
                self._refuse(
                    source,
                    document.number,
                    document.line,
                    f"the image of {bad[0].name!r} is {bad[0].source.name[:60]!r}",
                    "write an image reference, without blanks",
                )
                continue
            self.references[source.directory] = {
                tag.source.name: tag.name for tag in stream.spec.tags
            }

    def _images_of(self, source: Source) -> tuple[re.Pattern[str] | None, dict[str, str]]:
        """The images to replace in a file: those that its directory lists, by those of the release.

        A list in the directory above the component's is the release's, with the images to pull.
        """
        if source.directory not in self._images:
            above = self.references.get(source.directory.rpartition("/")[0], {})
            own = self.references.get(source.directory)
            real = dict(self._given.images)
            if own is None:
                own = above
            elif own is not above:
                real = {name: image for image, name in above.items()} | real
            images = {
                image: real[name] for image, name in own.items() if real.get(name, image) != image
            }
            self._images[source.directory] = (image_pattern(images), images)
        return self._images[source.directory]

    def _end(self, source: Source, document: Document) -> None:
        """Refuse the payload for its size, and read no more of it."""
        self.ended = True
        self._refuse(
            source,
            document.number,
            document.line,
            f"the payload up to here has more than {MAX_NODES:,} values, or more than"
            f" {MAX_TEXT >> 20} MiB of text, aliases expanded",
            "remove what is not a manifest, or write out what aliases stand for",
        )

    def _refuse(
        self, source: Source, document: int | None, line: int | None, message: str, remedy: str
    ) -> None:
        self.problems.append(
            PayloadProblem(
                file=source.file, document=document, line=line, message=message, remedy=remedy
            )
        )
        if len(self.problems) >= MAX_PROBLEMS and not self.ended:
            self.ended = True
            message = "more problems are not looked for"
            self._refuse(source, document, line, message, "correct those before it first")


class _ImageSource(msgspec.Struct):
    name: str


class _Tag(msgspec.Struct):
    name: str
    source: _ImageSource = msgspec.field(name="from")


class _Tags(msgspec.Struct):
    tags: tuple[_Tag, ...] = ()


class _ImageStream(msgspec.Struct):
    kind: str
    spec: _Tags


def _document_at(text: str, line: int) -> int:
    """The number of the document with this line; for messages only, so it may be inexact."""
    lines = text.splitlines()[:line]
    return max(1, sum(entry.rstrip() == "---" for entry in lines) + (lines[0].rstrip() != "---"))


def _not_an_object(value: Any) -> tuple[str, str] | None:
    """Why a document cannot be applied, and the remedy; None if it can."""
    if not isinstance(value, dict):
        return "not a Kubernetes object", "write a mapping with apiVersion, kind and metadata"
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            return f"no {field}", f"set {field}"
    if isinstance(value.get("items"), list) and value["kind"].endswith("List"):
        return f"a {value['kind']}", "write its items as documents of their own"
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return "no metadata", "set metadata.name"
    if not isinstance(metadata.get("name"), str) or not metadata["name"]:
        return "no metadata.name", "set metadata.name to a text"
    if not isinstance(metadata.get("namespace"), str | None):
        return "a metadata.namespace that is not text", "quote it"
    if not isinstance(metadata.get("annotations"), dict | None):
        return "metadata.annotations that is not a mapping", "write one `key: value` a line"
    return None
