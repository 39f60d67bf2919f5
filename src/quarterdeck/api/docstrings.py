"""Docstrings of classes and of their fields, as the text of a description.

A field's docstring is the string that follows it in the class body. Python drops it, so it is read
from the source; only the generator does that.
"""

import ast
import inspect
import textwrap
from functools import cache


def class_description(cls: type) -> str:
    """What the class says about itself; empty if it says nothing."""
    return _flowing(cls.__dict__.get("__doc__") or "")


def field_description(cls: type, field: str) -> str:
    """What the class, or the base that defines the field, says about it; empty if nothing."""
    for owner in cls.__mro__:
        if field in inspect.get_annotations(owner):
            return _field_docstrings(owner).get(field, "")
    return ""


@cache
def _field_docstrings(cls: type) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(definition, ast.ClassDef)  # noqa: S101 - the source of a class is a class
    found = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        match statement, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = _flowing(text)
    return found


def _flowing(text: str) -> str:
    """Each paragraph on one line, for readers that wrap by themselves; list items keep theirs."""
    paragraphs = inspect.cleandoc(text).strip().split("\n\n")
    return "\n\n".join(_flowing_paragraph(paragraph) for paragraph in paragraphs)


def _flowing_paragraph(paragraph: str) -> str:
    lines = (line.strip() for line in paragraph.splitlines())
    return "".join(f"\n{line}" if line.startswith("- ") else f" {line}" for line in lines).strip()
