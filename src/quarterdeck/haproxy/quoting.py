r"""Writes any text as one word of haproxy.cfg, or refuses it with the position of the fault.

Inside HAProxy's strong quotes every character is literal: `$`, `"`, `\`, `#` and blanks too. Only
a single quote ends them, and a line break ends the line whatever the quotes.
"""

from quarterdeck.haproxy.errors import RefusedTextError


def quoted(text: str) -> str:
    """The text as one word in strong quotes; raises `RefusedTextError` for a control character."""
    refuse_control_characters(text)
    return "'" + text.replace("'", r"'\''") + "'"


def refuse_control_characters(text: str) -> None:
    """Raise `RefusedTextError` at the first character that no line of a log can carry.

    A line break would begin another directive. rsyslog replaces the other control characters by
    `#` and their octal number. Half of a surrogate pair has no UTF-8 form.
    """
    for position, character in enumerate(text):
        number = ord(character)
        if number < 0x20 or number == 0x7F:
            reason = "control characters are not allowed; remove it"
        elif 0xD800 <= number <= 0xDFFF:
            reason = "half of a surrogate pair is not allowed; remove it"
        else:
            continue
        raise RefusedTextError(position, character, reason)
