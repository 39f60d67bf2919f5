"""Splits a log format as HAProxy reads it, and encodes it so that its text arrives unchanged.

HAProxy drops blanks at the beginning of a log format and merges runs of blanks, even inside strong
quotes. `encoded` writes each blank that would be lost as a constant expression. It decides nothing
about the directives: `check` asks HAProxy.
"""

import re
from collections.abc import Iterator

import msgspec

from quarterdeck.haproxy.errors import RefusedTextError
from quarterdeck.haproxy.quoting import refuse_control_characters

_BLANK = '%{-Q,-X,-E}[str(" ")]'
"""A blank that HAProxy does not merge, whatever a `%{+Q}o` before it says."""

_DIRECTIVE = re.compile(r"%(?:%|(?:\{[^}]*\}?)?(?:\[|[A-Za-z]*))")
"""A directive up to its name, or up to the bracket that opens an expression."""

_OPTIONS = re.compile(r"%(\{[^}]*\})?o")
"""A directive that only sets options, so that the blanks on both sides of it are merged."""

_ESCAPED = frozenset("\\ \"'nrt")
"""What a backslash escapes in the argument of an expression; before others it is a backslash."""


_READS_A_FILE = re.compile(r"(?<=[\[,])(?:map(?:_\w+)?|jwt_verify)\(")
"""A converter that reads a file: HAProxy's complaint about one shows what is in it."""


class FormatPart(msgspec.Struct, frozen=True):
    """A piece of a log format: its position, its characters, and whether it is plain text."""

    position: int
    characters: str
    plain: bool


def parts(text: str) -> Iterator[FormatPart]:
    """The pieces of a log format: plain text, and each directive by itself."""
    begin = position = 0
    while (found := text.find("%", position)) >= 0:
        if found > begin:
            yield FormatPart(begin, text[begin:found], plain=True)
        match = _DIRECTIVE.match(text, found)
        assert match is not None  # noqa: S101  # the pattern matches every "%"
        position = match.end()
        if match[0].endswith("["):
            position = _end_of_expression(text, position)
        yield FormatPart(found, text[found:position], plain=False)
        begin = position
    if begin < len(text):
        yield FormatPart(begin, text[begin:], plain=True)


def encoded(text: str) -> str:
    """The log format with each blank that HAProxy would drop written as an expression.

    Raises `RefusedTextError` for control characters, which no line of a log can carry, and for what
    reads a file.
    """
    refuse_control_characters(text)
    _refuse_files(text)
    written: list[str] = []
    after_blank = True  # HAProxy drops blanks at the beginning, too.
    for part in parts(text):
        if not part.plain:
            written.append(part.characters)
            after_blank &= _OPTIONS.fullmatch(part.characters) is not None
            continue
        for character in part.characters:
            if character != " ":
                written.append(character)
                after_blank = False
            elif after_blank:
                written.append(_BLANK)
                after_blank = False
            else:
                written.append(character)
                after_blank = True
    return "".join(written)


def _refuse_files(text: str) -> None:
    """Refuse converters that read files: those of the pod are its account's token and its keys.

    The whole text is searched, not only what `parts` takes for an expression, to be safe.
    """
    if found := _READS_A_FILE.search(text):
        raise RefusedTextError(
            found.start(), found[0], "a log format may not read files; remove the converter"
        )


def _end_of_expression(text: str, position: int) -> int:
    """The position after the bracket that closes the expression which begins here."""
    quote, in_arguments = "", False
    while position < len(text):
        character = text[position]
        position += 1
        if not in_arguments:
            if character == "]":
                break
            in_arguments = character == "("
        elif quote != "'" and character == "\\" and text[position : position + 1] in _ESCAPED:
            position += 1
        elif character in "\"'" and quote in ("", character):
            quote = "" if quote else character
        elif character == ")" and not quote:
            in_arguments = False
    return position
