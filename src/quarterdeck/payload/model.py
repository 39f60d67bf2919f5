"""The types of a loaded payload: manifests in order, and the release.

`load` makes these values; the other modules decide with them.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from quarterdeck.api.meta import Object

PLACEHOLDER_VERSION = "0.0.1-snapshot"
"""The placeholder in manifests for the release's version."""


class ObjectIdentity(NamedTuple):
    """The object of a manifest, without its API version."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{kind}/{name}"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One document of a payload; its object is shared, do not change it."""

    file: str
    """The path within the payload."""
    document: int
    """The number of the document in the file, from 1."""
    line: int
    """The line on which the document starts, from 1."""
    run_level: int | None
    """None if the name of the file has none; those come last."""
    component: str
    """The component in the file name; empty if it has none."""
    object: Object

    @property
    def identity(self) -> ObjectIdentity:
        """The identity of its object."""
        api_version, metadata = self.object["apiVersion"], self.object["metadata"]
        return ObjectIdentity(
            api_version.rpartition("/")[0],
            self.object["kind"],
            metadata.get("namespace") or "",
            metadata["name"],
        )

    @property
    def annotations(self) -> Mapping[str, Any]:
        """Its annotations; in an invalid manifest the values may be of any type."""
        return self.object["metadata"].get("annotations") or {}

    @property
    def directory(self) -> str:
        """The directory of its file within the payload; empty at the top."""
        parent = str(PurePosixPath(self.file).parent)
        return "" if parent == "." else parent

    @property
    def place(self) -> str:
        """The place as `file:line`, for editors."""
        return f"{self.file}:{self.line}"


class KnownRelease(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the release of a payload; empty fields are not known."""

    version: str = ""
    image: str = ""
    previous: tuple[str, ...] = ()
    """The versions that can update to it."""
    images: Mapping[str, str] = {}
    """By image name (a tag of `image-references`): the image to pull."""


class ReleaseMetadata(msgspec.Struct, frozen=True):
    """The content of a payload's `release-metadata`."""

    version: str
    previous: tuple[str, ...] = ()
    image: str = ""
    url: str = ""


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """All manifests of a release, in file order, before any filter."""

    release: KnownRelease = KnownRelease()
    manifests: tuple[Manifest, ...] = ()
    references: Mapping[str, Mapping[str, str]] = {}
    """By directory: its `image-references`, from the image in manifests to its name."""
    too_deep: tuple[str, ...] = ()
    """Manifest files in directories that are too deep to be read."""

    def references_for(self, manifest: Manifest) -> Mapping[str, str] | None:
        """The image list for a manifest: that of its directory, else of the directory above."""
        directory = manifest.directory
        if directory in self.references or not directory:
            return self.references.get(directory)
        return self.references.get(directory.rpartition("/")[0])


class PayloadProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a file or one of its documents cannot be used."""

    file: str
    document: int | None = None
    line: int | None = None
    message: str
    remedy: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        document = "" if self.document is None else f" (document {self.document})"
        return f"{place}{document}: {self.message}; {self.remedy}"


class PayloadError(Exception):
    """A payload cannot be loaded; it has all problems of its files."""

    def __init__(self, problems: tuple[PayloadProblem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
