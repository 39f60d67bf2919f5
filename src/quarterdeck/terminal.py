"""Text for terminals: escaping, width and colours. Pure.

Anyone who may write an object controls the text in it. Control characters in it would set the title
and the clipboard of a terminal, clear the screen, and forge lines.
"""

import unicodedata
from collections.abc import Mapping

_KEPT = {"\n"}
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that Unicode calls printable and that no terminal shows."""
_MAX_MARKS = 4
"""The most marks on a letter; a terminal draws more of them over the lines above and below."""


def visible(text: str, *, lines: bool = False) -> str:
    """The text with control characters as escapes; with `lines`, line ends are kept.

    Characters that change the direction of text, have no width, cannot be seen, or are heaped upon
    a letter are escaped too.
    """
    if text.isascii() and text.isprintable():
        return text
    shown, stacked = [], 0
    for one in text:
        stacked = stacked + 1 if _is_mark(one) else 0
        kept = _shown(one, lines=lines) and stacked <= _MAX_MARKS
        shown.append(one if kept else _escape(one))
    return "".join(shown)


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
    return (one.isprintable() and one not in _BLANK) or (lines and one in _KEPT)


def _is_mark(one: str) -> bool:
    """Whether it is drawn onto the letter before it."""
    return not one.isascii() and unicodedata.category(one) in ("Mn", "Me")


def _escape(one: str) -> str:
    return one.encode("unicode_escape", "backslashreplace").decode()


def _columns(one: str) -> int:
    if _is_mark(one):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1
