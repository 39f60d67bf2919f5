"""Releases and their differences as text for people."""

import click

from quarterdeck.cli.output import table
from quarterdeck.images.described import Difference, ReadRelease, images_of, release_view

_SHOWN_FIELDS = 3
_SHOWN_DIGEST = len("sha256:") + 12
_COLOURS = {"added": "green", "removed": "red", "changed": "yellow"}


def info_text(read: ReadRelease) -> str:
    """A release: the facts, then its components and its images."""
    view = release_view(read)
    lines = [
        f"Version:    {view['version'] or '(none)'}",
        f"From:       {', '.join(view['previous']) or '(no version)'}",
        f"Manifests:  {view['manifests']} of {len(view['components'])} components",
        f"Sealed:     {'yes' if view['sealed'] else 'no'}",
    ]
    if image := view.get("image"):
        lines += [
            f"Digest:     {image['digest']}",
            f"Size:       {image['size'] / 1e6:.1f} MB",
            f"Base:       {image['base'] or '(none)'}",
        ]
    images = images_of(read.payload)
    if images:
        lines += [
            "",
            table(["IMAGE", "PULLED FROM"], [[name, ref] for name, ref in images.items()]),
        ]
    return "\n".join(lines)


def difference_text(found: Difference) -> str:
    """How two releases differ: a table of images, and one of manifests."""
    old, new = (version or "(no version)" for version in found.versions)
    parts = [f"{old} -> {new}"]
    if found.images:
        rows = [[name, _short(before), _short(after)] for name, before, after in found.images]
        parts.append(table(["IMAGE", "BEFORE", "AFTER"], rows))
    if found.manifests:
        rows = [
            [click.style(each.change, fg=_COLOURS[each.change]), each.object, _fields(each.fields)]
            for each in found.manifests
        ]
        parts.append(table(["CHANGE", "OBJECT", "FIELDS"], rows))
    if found.is_none:
        parts.append("no image and no manifest differs")
    return "\n\n".join(parts)


def _short(image: str) -> str:
    """An image with the start of its digest, which is enough to tell two apart."""
    name, at, digest = image.partition("@")
    return f"{name}{at}{digest[:_SHOWN_DIGEST]}" or "-"


def _fields(fields: tuple[str, ...]) -> str:
    more = len(fields) - _SHOWN_FIELDS
    shown = ", ".join(fields[:_SHOWN_FIELDS])
    return f"{shown} and {more} more" if more > 0 else shown
