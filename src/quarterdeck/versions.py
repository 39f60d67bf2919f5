"""Parses and compares semantic versions (semver.org, 2.0.0) and ranges of them. Pure."""

import operator
import re
from collections.abc import Callable
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
"""A longer text is refused: parsing long numbers is slow."""
_LONGEST_RANGE = 1024
_COMPARISON = re.compile(r"(?P<sign>[<>]=?|==?|!=?)?\s*(?P<version>[^\s<>=!|]+)\s*", re.ASCII)
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "": operator.eq,
    "=": operator.eq,
    "==": operator.eq,
    "!": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Version(msgspec.Struct, frozen=True):
    """A parsed version. Build metadata orders only versions that are equal otherwise."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    build: str = ""

    # All four: a Struct has its own comparisons, so `total_ordering` would add none.
    def __lt__(self, other: "Version") -> bool:
        return self._order < other._order

    def __le__(self, other: "Version") -> bool:
        return self._order <= other._order

    def __gt__(self, other: "Version") -> bool:
        return self._order > other._order

    def __ge__(self, other: "Version") -> bool:
        return self._order >= other._order

    @property
    def line(self) -> tuple[int, int]:
        """Major and minor version, which a patch update does not change."""
        return self.major, self.minor

    @property
    def _order(self) -> tuple[Any, ...]:
        # A release is after its own pre-releases; numbers are before words.
        identifiers = tuple(
            (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in self.pre
        )
        numbers = (self.major, self.minor, self.patch)
        return (*numbers, not self.pre, identifiers, self.build)


def parse_version(text: str) -> Version | None:
    """The version in a text; None if it is not a version."""
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


class Range(msgspec.Struct, frozen=True):
    """A set of versions: at least one group must match, with all its comparisons."""

    groups: tuple[tuple[tuple[str, Version], ...], ...]

    def __contains__(self, version: Version) -> bool:
        return any(
            all(_SIGNS[sign](_plain(version), _plain(bound)) for sign, bound in group)
            for group in self.groups
        )


def parse_range(text: str) -> Range | None:
    """The range in a text like `>=1.0.0 <1.2.0 || 2.0.0`; None if it is not a range."""
    if len(text) > _LONGEST_RANGE:
        return None
    groups = tuple(_comparisons(part) for part in text.split("||"))
    return Range(groups) if all(groups) else None


def _comparisons(text: str) -> tuple[tuple[str, Version], ...]:
    """The comparisons in a text; empty if it is not valid."""
    found, at, text = [], 0, text.strip()
    while at < len(text):
        match = _COMPARISON.match(text, at)
        version = parse_version(match["version"]) if match else None
        if match is None or version is None:
            return ()
        found.append((match["sign"] or "", version))
        at = match.end()
    return tuple(found)


def _plain(version: Version) -> Version:
    """The version without build metadata, which ranges ignore."""
    return msgspec.structs.replace(version, build="") if version.build else version
