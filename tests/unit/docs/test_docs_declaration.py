"""`docs/authors/declaration.md` has every field of a declaration, with its default."""

import re
from typing import Any

import msgspec
import pytest
from tests.places import DOCS

from quarterdeck.delivery.declaration import (
    Declaration,
    Deployed,
    Local,
    LocalObjects,
    PayloadPart,
    PolicyRule,
    StaticPodDelivery,
)

ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|", re.MULTILINE)
CLASSES = [
    *(Declaration, Deployed, Local, LocalObjects),
    *(PayloadPart, PolicyRule, StaticPodDelivery),
]
IN_WORDS = {"", (), "profiles", "in_payload", "local"}
"""Defaults that the page says in words, and fields with such a default."""


def rows(cls: type) -> dict[str, str]:
    """The default of each field in the section of the page about this class."""
    sections = (DOCS / "authors" / "declaration.md").read_text().split("\n## ")
    (section,) = (one for one in sections if one.startswith(f"`{cls.__name__}`\n"))
    return dict(ROW.findall(section))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: str(cls.__name__))
def test_every_field_is_there_with_its_default(cls: Any) -> None:
    fields = {one.name: one for one in msgspec.structs.fields(cls)}
    if cls is StaticPodDelivery:  # the page refers to the table of `Deployed` for the others
        fields = {name: one for name, one in fields.items() if name not in rows(Deployed)}
    found = rows(cls)
    assert found.keys() == fields.keys()
    for name, field in fields.items():
        if field.default is msgspec.NODEFAULT:
            assert (name, found[name]) == (name, "required")
        elif name not in IN_WORDS and field.default not in IN_WORDS:
            assert (name, found[name]) == (name, f"`{field.default!r}`".replace("'", '"'))
