"""Descriptions of classes and fields, from their docstrings.

The docstring of a field is the string after it in the class body. Python drops it, so it is read
from the source.
"""

import ast
import inspect
import textwrap
from functools import cache


def class_description(cls: type) -> str:
    """The docstring of the class; empty if it has none."""
    return _flowing(cls.__dict__.get("__doc__") or "")


def field_description(cls: type, field: str) -> str:
    """The docstring of the field, in the class or in the base that defines it; empty if none."""
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
    """The text with each paragraph and each list item on one line, for readers that wrap lines."""
    paragraphs = inspect.cleandoc(text).strip().split("\n\n")
    return "\n\n".join(_flowing_paragraph(paragraph) for paragraph in paragraphs)


def _flowing_paragraph(paragraph: str) -> str:
    lines = (line.strip() for line in paragraph.splitlines())
    return "".join(f"\n{line}" if line.startswith("- ") else f" {line}" for line in lines).strip()
