"""Text that is safe on a terminal, how wide it is there, and whether it may have colours. Pure.

What an object says was written by whoever may write the object. A terminal obeys control characters
in it: they set titles and the clipboard, clear the screen, and forge lines.
"""

import unicodedata
from collections.abc import Mapping

_KEPT = {"\n"}


def visible(text: str, *, lines: bool = False) -> str:
    """The text with control characters written as escapes; with `lines`, line ends are kept.

    Also what turns the direction of text around, or has no width, is escaped: it forges too.
    """
    if text.isprintable():
        return text
    return "".join(one if _shown(one, lines=lines) else _escape(one) for one in text)


def width(text: str) -> int:
    """How many columns the text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(one) for one in text)


def cut(text: str, columns: int) -> str:
    """The text cut to these columns, with an ellipsis where something is missing."""
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
    """Whether to write colours: on a terminal that knows some, unless NO_COLOR is set."""
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def _shown(one: str, *, lines: bool) -> bool:
    return one.isprintable() or (lines and one in _KEPT)


def _escape(one: str) -> str:
    return one.encode("unicode_escape", "backslashreplace").decode()


def _columns(one: str) -> int:
    if unicodedata.combining(one):
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1
