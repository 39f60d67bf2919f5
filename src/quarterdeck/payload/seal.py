"""The seal of a complete release: `SHA256SUMS`, with the hash of each file that loading reads.

Without it, a directory that is still being copied looks like a smaller release. So a release is
applied only if it has the list and every file matches it. The author of a release writes the list
last, with `seal`, and copies it last. `sha256sum --check` reads it too.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from quarterdeck.payload.files import (
    IMAGE_REFERENCES,
    MANIFEST_ENDINGS,
    MAX_FILE,
    RELEASE_METADATA,
    Source,
    list_files,
    printable,
    read_files,
    read_regular,
)
from quarterdeck.payload.model import PayloadError, PayloadProblem

SUMS = "SHA256SUMS"
_LINE = re.compile(r"(?P<hash>[0-9a-f]{64}) [ *](?P<file>[^\n]+)\Z")
_REMEDY = "copy the whole release again; who makes it seals it with: quarterdeck payload seal DIR"


def seal(directory: Path, known: Mapping[str, str] = MappingProxyType({})) -> int:
    """Write the list of a complete directory; return the number of its files.

    PayloadError if a file cannot be read; one whose hash is known is not read. The list is written
    atomically.
    """
    listing = list_files([directory])
    problems = list(listing.problems)
    hashes = {one.file: known[one.file] for one in listing.sources if one.file in known}
    # The metadata last: a list that is cut short lacks it, and so never fits a release.
    ordered = sorted(listing.sources, key=_is_metadata)
    for source, data in read_files([one for one in ordered if one.file not in known]):
        if isinstance(data, PayloadProblem):
            problems.append(data)
        else:
            hashes[source.file] = hashlib.sha256(data).hexdigest()
    if problems:
        raise PayloadError(tuple(problems))
    new = directory / f".{SUMS}.new"
    lines = (f"{hashes[one.file]}  {one.file}\n" for one in ordered)
    new.write_text("".join(lines), encoding="utf-8")
    new.replace(directory / SUMS)
    return len(ordered)


def read_seal(directory: Path) -> Mapping[str, str] | PayloadProblem:
    """The hashes by file, from the list; a problem if the list cannot be read."""
    try:
        text = read_regular(directory / SUMS, MAX_FILE).decode()
    except FileNotFoundError:
        return _problem(SUMS, "missing, so it is not known whether the release is complete")
    except (OSError, UnicodeDecodeError) as error:
        return _problem(SUMS, f"cannot be read: {getattr(error, 'strerror', None) or error}")
    sums: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line)
        if match is None:
            return PayloadProblem(
                file=SUMS, line=number, message="not a hash and a file", remedy=_REMEDY
            )
        sums[match["file"].removeprefix("./")] = match["hash"]
    return sums


class Sealed:
    """Compares the files of a payload with its list, as they are read."""

    def __init__(self, sums: Mapping[str, str]) -> None:
        self._sums = sums
        self._read: set[str] = set()

    def problem_with(self, file: str, data: bytes) -> PayloadProblem | None:
        """The problem of a file's content; None if it matches the list."""
        self._read.add(file)
        wanted = self._sums.get(file)
        if wanted is None:
            return _problem(file, f"not listed in {SUMS}")
        if hashlib.sha256(data).hexdigest() != wanted:
            return _problem(file, f"not as {SUMS} says: it was changed, or only half copied")
        return None

    def missing(self) -> tuple[PayloadProblem, ...]:
        """A problem for each listed file that was not read."""
        return tuple(
            _problem(file, f"not there, but listed in {SUMS}")
            for file in sorted(self._sums.keys() - self._read)
            if file.endswith(MANIFEST_ENDINGS)
            or file.rpartition("/")[2] in (IMAGE_REFERENCES, RELEASE_METADATA)
        )


def matches(directory: Path) -> bool:
    """Whether each file of a directory is as its list says, and none is missing."""
    sums = read_seal(directory)
    if isinstance(sums, PayloadProblem):
        return False
    sealed, listing = Sealed(sums), list_files([directory])
    if listing.problems:
        return False
    for source, data in read_files(listing.sources):
        if isinstance(data, PayloadProblem) or sealed.problem_with(source.file, data):
            return False
    return not sealed.missing()


def _is_metadata(source: Source) -> bool:
    return source.file == RELEASE_METADATA


def _problem(file: str, message: str) -> PayloadProblem:
    return PayloadProblem(file=printable(file), message=message, remedy=_REMEDY)
