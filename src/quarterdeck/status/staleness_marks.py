"""The two texts that the staleness checker writes into conditions.

The *challenge* puts a prefix before the message of a condition; a running operator writes its own
message again. The *verdict* says that no operator did. This module writes, recognises and removes
both. The staleness checker decides when they are written; each operator's reporter answers.
"""

import re

CHECKING_PREFIX = (
    "Operator checking for stale status, the active operator will reset this message: "
)

# Any duration is recognised: the checker may have run with another interval before.
_VERDICT = re.compile(
    r"Operator has not updated this condition for more than (?P<silence>\d+ (?:second|minute)s?), "
    r'last known condition state was "(?P<status>.*?)", '
    r"original message:(?: |\Z)",
    re.DOTALL,
)
# With an empty message the prefix ends in a blank, which some writers trim.
_MARK = re.compile(rf"{re.escape(CHECKING_PREFIX.rstrip())}(?: |\Z)|{_VERDICT.pattern}", re.DOTALL)


def checking_message(message: str) -> str:
    """The challenge: the checking prefix and the original message."""
    return CHECKING_PREFIX + original(message)


def verdict_message(message: str, last_status: str, seconds: float) -> str:
    """The verdict: the time without an answer, the last status and the original message."""
    return (
        f"Operator has not updated this condition for more than {_duration(seconds)}, "
        f'last known condition state was "{last_status}", '
        f"original message: {original(message)}"
    )


def is_checking(message: str) -> bool:
    """Whether the message is a challenge."""
    return message.startswith(CHECKING_PREFIX) or message == CHECKING_PREFIX.rstrip()


def is_verdict(status: str, message: str) -> bool:
    """Whether a condition with this status and message has the verdict."""
    return status == "Unknown" and _VERDICT.match(message) is not None


def is_marked(status: str, message: str) -> bool:
    """Whether a condition has a text of the checker in place of the operator's."""
    return is_checking(message) or is_verdict(status, message)


def original(message: str) -> str:
    """The operator's own message, without the checker's text before it."""
    start = 0
    while mark := _MARK.match(message, start):
        start = mark.end()
    return message[start:]


def recorded_status(message: str) -> str | None:
    """The status that a condition had before the verdict; None without a verdict."""
    verdict = _VERDICT.match(message)
    return None if verdict is None else verdict["status"]


def recorded_silence(message: str) -> str | None:
    """The time without an answer, as the verdict has it; None without a verdict."""
    verdict = _VERDICT.match(message)
    return None if verdict is None else verdict["silence"]


def _duration(seconds: float) -> str:
    """Whole minutes if it is a multiple of a minute, else whole seconds, rounded down."""
    whole = int(seconds)
    count, unit = (whole // 60, "minute") if whole and whole % 60 == 0 else (whole, "second")
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
