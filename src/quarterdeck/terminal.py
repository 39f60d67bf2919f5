"""Text for terminals: escaping, width and colours. Pure.

Anyone who may write an object controls the text in it. Control characters in it would set the title
and the clipboard of a terminal, clear the screen, and forge lines.
"""

import unicodedata
from collections.abc import Mapping

_KEPT = {"\n"}


def visible(text: str, *, lines: bool = False) -> str:
    """The text with control characters as escapes; with `lines`, line ends are kept.

    Characters that change the direction of text, or have no width, are escaped too.
    """
    if text.isprintable():
        return text
    return "".join(one if _shown(one, lines=lines) else _escape(one) for one in text)


def width(text: str) -> int:
    """The number of columns of the text: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(one) for one in text)


def cut(text: str, columns: int) -> str:
    """The text cut to this many columns, with an ellipsis if something is missing."""
    if width(text) <= columns:
        return text
    kept, used = [], 0
    for one in text:
        used += _columns(one)
        if used > columns - 1:
            break
        kept.append(one)
    return "".join(kept) + "…"


def wants_colours(environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether to write colours: on a terminal that supports them, unless NO_COLOR is set."""
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _shown(one: str, *, lines: bool) -> bool:
    return one.isprintable() or (lines and one in _KEPT)


def _escape(one: str) -> str:
    return one.encode("unicode_escape", "backslashreplace").decode()


def _columns(one: str) -> int:
    if unicodedata.combining(one):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1
