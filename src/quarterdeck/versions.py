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
_WILDCARD = re.compile(rf"(?P<major>{_NUMBER})\.(?:x(?:\.x)?|(?P<minor>{_NUMBER})\.x)\Z", re.ASCII)
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


_Bounds = Callable[[Version, Version], tuple[tuple[str, Version], ...]]
_BOUNDS: dict[str, _Bounds] = {
    "": lambda first, after: ((">=", first), ("<", after)),
    "=": lambda first, after: ((">=", first), ("<", after)),
    "==": lambda first, after: ((">=", first), ("<", after)),
    "<": lambda first, _after: (("<", first),),
    "<=": lambda _first, after: (("<", after),),
    ">": lambda _first, after: ((">=", after),),
    ">=": lambda first, _after: ((">=", first),),
}
"""What a comparison with a wildcard means, by the first version of it and the first one after."""


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
    found: list[tuple[str, Version]] = []
    at, text = 0, text.strip()
    while at < len(text):
        match = _COMPARISON.match(text, at)
        parsed = _comparison(match["sign"] or "", match["version"]) if match else ()
        if match is None or not parsed:
            return ()
        found += parsed
        at = match.end()
    return tuple(found)


def _comparison(sign: str, text: str) -> tuple[tuple[str, Version], ...]:
    """One comparison; that with a wildcard, such as `1.2.x`, as those with its bounds.

    Empty if it is not valid. All versions but those of a wildcard would be two ranges, which are
    written as such.
    """
    version = parse_version(text)
    if version is not None:
        return ((sign, version),)
    match = _WILDCARD.match(text) if len(text) <= _LONGEST else None
    if match is None:
        return ()
    major, minor = int(match["major"]), int(match["minor"] or 0)
    first = Version(major, minor, 0)
    after = Version(major, minor + 1, 0) if match["minor"] else Version(major + 1, 0, 0)
    bounds = _BOUNDS.get(sign)
    return bounds(first, after) if bounds else ()


def _plain(version: Version) -> Version:
    """The version without build metadata, which ranges ignore."""
    return msgspec.structs.replace(version, build="") if version.build else version
