"""What a payload is once it is read: its manifests in order, and what it says of its release.

Nothing here reads files or decides; `load` makes these values, the other modules judge them.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from quarterdeck.api.meta import Object

PLACEHOLDER_VERSION = "0.0.1-snapshot"
"""What manifests say where the release's version belongs."""


class Identity(NamedTuple):
    """Which object of the cluster a manifest is about; its API version does not matter."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        kind = f"{self.kind}.{self.group}" if self.group else self.kind
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{kind}/{name}"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One document of a payload; its object is shared and must not be changed."""

    file: str
    """The path within the payload."""
    document: int
    """Which document of the file, from 1."""
    line: int
    """The line on which the document starts, from 1."""
    run_level: int | None
    """None for a file whose name has none; those come last."""
    component: str
    """The operator that ships it, by its file name; empty where the name has none."""
    object: Object

    @property
    def identity(self) -> Identity:
        """The object that it is about."""
        api_version, metadata = self.object["apiVersion"], self.object["metadata"]
        return Identity(
            api_version.rpartition("/")[0],
            self.object["kind"],
            metadata.get("namespace") or "",
            metadata["name"],
        )

    @property
    def annotations(self) -> Mapping[str, Any]:
        """Its annotations; values are text in a good manifest, anything in a bad one."""
        return self.object["metadata"].get("annotations") or {}

    @property
    def directory(self) -> str:
        """The directory of its file within the payload; empty at the top."""
        parent = str(PurePosixPath(self.file).parent)
        return "" if parent == "." else parent

    @property
    def place(self) -> str:
        """`file:line`, as editors take it."""
        return f"{self.file}:{self.line}"


class KnownRelease(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the release that a payload belongs to; empty means not known."""

    version: str = ""
    image: str = ""
    previous: tuple[str, ...] = ()
    """The versions from which it can be reached."""
    images: Mapping[str, str] = {}
    """Image name (a tag of `image-references`) to where it can be pulled from."""


class ReleaseMetadata(msgspec.Struct, frozen=True):
    """What a payload's `release-metadata` says."""

    version: str
    previous: tuple[str, ...] = ()
    image: str = ""
    url: str = ""


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """All manifests of a release, in file order, before any filter."""

    release: KnownRelease = KnownRelease()
    manifests: tuple[Manifest, ...] = ()
    references: Mapping[str, Mapping[str, str]] = {}
    """Directory to what its `image-references` lists: image as manifests write it, to name."""
    passed_over: tuple[str, ...] = ()
    """Manifest files in directories too deep to be read."""

    def references_for(self, manifest: Manifest) -> Mapping[str, str] | None:
        """The image list that covers a manifest: its directory's, else the one above."""
        directory = manifest.directory
        if directory in self.references or not directory:
            return self.references.get(directory)
        return self.references.get(directory.rpartition("/")[0])


class Problem(msgspec.Struct, frozen=True, kw_only=True):
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
    """A payload that cannot be loaded, with everything that is wrong with its files."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
