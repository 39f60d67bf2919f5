"""The releases that were fetched, as directories that are named `sha256-<hex>`.

A release is written under another name, sealed, and renamed when it is whole, so that a crash of
the operator leaves no half release. What a crash left is removed at the next start. Nothing waits
for the disk: after a crash of the machine the hashes tell whether a release is whole, and one that
is not is fetched again. At most `MAX_KEPT` releases stay; those that the cluster needs always do.
"""

import os
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import mkdtemp

import msgspec

from quarterdeck.payload.model import PayloadError, PayloadProblem
from quarterdeck.payload.releases import (
    RELEASE_IMAGE,
    FetchedImage,
    check_metadata,
    fetched_release,
)
from quarterdeck.payload.seal import SUMS, matches, seal

MAX_KEPT = 5
_PART = "part-"


class ReleaseStore:
    """The directory of fetched releases."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def directory(self, digest: str) -> Path:
        """Where the release of this digest lies, or will."""
        return self.root / digest.replace(":", "-", 1)

    def has(self, digest: str) -> bool:
        """Whether the release of this digest is there, whole: as it was when it was sealed."""
        directory = self.directory(digest)
        return fetched_release(directory) is not None and matches(directory)

    def discard_damaged(self, digest: str) -> None:
        """Remove the release of this digest if it is not whole."""
        if not self.has(digest):
            shutil.rmtree(self.directory(digest), ignore_errors=True)

    def clean(self) -> None:
        """Remove what interrupted fetches left; nobody may be fetching."""
        for left in self.root.glob(f"{_PART}*"):
            shutil.rmtree(left, ignore_errors=True)

    def begin(self) -> Path:
        """A new directory for a fetch; OSError if it cannot be made."""
        self.root.mkdir(mode=0o755, exist_ok=True)
        return Path(mkdtemp(prefix=_PART, dir=self.root))

    def finish(
        self, part: Path, digest: str, facts: FetchedImage, hashes: Mapping[str, str] | None = None
    ) -> Path:
        """Seal what was fetched, and give it its name; PayloadError if it is no release.

        The hashes are those of the files, as far as they are known.
        """
        for name in (SUMS, RELEASE_IMAGE, f".{SUMS}.new", f".{RELEASE_IMAGE}.new"):
            if (part / name).is_dir():
                remedy = "make the release again with: quarterdeck release build"
                problem = PayloadProblem(file=name, message="a directory", remedy=remedy)
                raise PayloadError((problem,))
        seal(part, hashes or {})
        check_metadata(part)
        _write_facts(part, facts)
        part.chmod(0o755)
        target = self.directory(digest)
        try:
            part.rename(target)
        except OSError:
            if self.has(digest):  # another fetch of it was quicker
                self.record(digest, facts)
                return target
            shutil.rmtree(target, ignore_errors=True)
            part.rename(target)
        return target

    def record(self, digest: str, facts: FetchedImage) -> None:
        """Replace what is known of a release that is there."""
        _write_facts(self.directory(digest), facts)

    def prune(self, needed: Collection[str]) -> None:
        """Remove the oldest releases beyond MAX_KEPT, but none of the needed digests."""
        keep = {self.directory(digest).name for digest in needed}
        try:
            others = [one for one in self.root.glob("sha256-*") if one.name not in keep]
            others.sort(key=lambda one: one.stat().st_mtime, reverse=True)
        except OSError:
            return
        for surplus in others[max(0, MAX_KEPT - len(keep)) :]:
            shutil.rmtree(surplus, ignore_errors=True)


def _write_facts(directory: Path, facts: FetchedImage) -> None:
    new = directory / f".{RELEASE_IMAGE}.new"
    new.write_bytes(msgspec.json.encode(facts))
    os.replace(new, directory / RELEASE_IMAGE)  # noqa: PTH105 - atomic, over an existing file
