"""Release versions: parsed and compared as semantic versions (semver.org, 2.0.0)."""

import re
from functools import total_ordering
from typing import Any

import msgspec

_NUMBER = r"0|[1-9]\d*"
_PRE = rf"(?:{_NUMBER}|\d*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})"
    rf"(?:-(?P<pre>{_PRE}(?:\.{_PRE})*))?"
    r"(?:\+(?P<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?\Z",
    re.ASCII,
)
_LONGEST = 128
"""More is no version but an attempt on the number parser."""


@total_ordering
class Version(msgspec.Struct, frozen=True):
    """A parsed version. Build metadata is kept, and counts only to tell equal ones apart."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    build: str = ""

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return self._order < other._order

    @property
    def line(self) -> tuple[int, int]:
        """Major and minor version: what a patch update does not change."""
        return self.major, self.minor

    @property
    def _order(self) -> tuple[Any, ...]:
        # A release comes after its own pre-releases; numbers come before words.
        identifiers = tuple(
            (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in self.pre
        )
        numbers = (self.major, self.minor, self.patch)
        return (*numbers, not self.pre, identifiers, self.build)


def parse_version(text: str) -> Version | None:
    """The version that a text is; None where it is none."""
    match = _VERSION.match(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    return Version(
        int(match["major"]),
        int(match["minor"]),
        int(match["patch"]),
        tuple(match["pre"].split(".")) if match["pre"] else (),
        match["build"] or "",
    )
