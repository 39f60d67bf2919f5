"""Mirrors of registries: other places of the same repositories. Pure.

Content with a digest, and signatures, which are checked by a key, may come from a mirror: it cannot
change them. What a tag means is asked of the named registry only.
"""

import msgspec

from quarterdeck.registry.reference import Reference, parse_reference


class Mirror(msgspec.Struct, frozen=True, kw_only=True):
    """A repository, or a registry, and where its copy is."""

    source: str
    place: str


def parse_mirrors(text: str) -> tuple[Mirror, ...]:
    """The mirrors in `SOURCE=MIRROR,…`; ValueError, with what to write, if one is not so."""
    found = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        source, equals, place = (one.strip() for one in part.partition("="))
        if not equals or not source.strip("/") or not place.strip("/"):
            raise ValueError(f"{part!r} is no mirror; write registry.example.test=mirror.test:5000")
        mirror = Mirror(source=source.strip("/"), place=place.strip("/"))
        parse_reference(f"{mirror.place}/x")
        found.append(mirror)
    return tuple(found)


def places(reference: Reference, mirrors: tuple[Mirror, ...]) -> tuple[Reference, ...]:
    """Where to ask for an image: its mirrors in their order, then its own registry."""
    found = []
    for mirror in mirrors:
        if reference.name == mirror.source or reference.name.startswith(f"{mirror.source}/"):
            path = reference.name.removeprefix(mirror.source)
            place = parse_reference(f"{mirror.place}{path or '/'}".rstrip("/"))
            found.append(msgspec.structs.replace(place, tag=reference.tag, digest=reference.digest))
    return (*found, reference)
