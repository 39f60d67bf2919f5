"""The two texts by which a condition shows that its operator is asked for, or given up.

The *challenge* puts a prefix before the message of a condition; a live operator puts its own
message back. The *verdict* says that nobody did. Here is how both are written, recognised and
taken off again. When they are written is decided by the staleness checker; how they are answered,
by each operator's reporter.
"""

import re

CHECKING_PREFIX = (
    "Operator checking for stale status, the active operator will reset this message: "
)

# Any interval is recognised: the checker may have run with another one before.
_VERDICT = re.compile(
    r"Operator has not updated this condition for more than (?P<silence>\d+ (?:second|minute)s?), "
    r'last known condition state was "(?P<status>.*?)", '
    r"original message:(?: |\Z)",
    re.DOTALL,
)
# With an empty message the prefix ends in a blank, which careful writers like to trim.
_MARK = re.compile(rf"{re.escape(CHECKING_PREFIX.rstrip())}(?: |\Z)|{_VERDICT.pattern}", re.DOTALL)


def checking_message(message: str) -> str:
    """The challenge: the original of this message behind the checking prefix."""
    return CHECKING_PREFIX + original(message)


def verdict_message(message: str, last_status: str, seconds: float) -> str:
    """The verdict: nobody answered for this long; keeps the status and the original message."""
    return (
        f"Operator has not updated this condition for more than {_duration(seconds)}, "
        f'last known condition state was "{last_status}", '
        f"original message: {original(message)}"
    )


def is_checking(message: str) -> bool:
    """Whether a condition with this message stands challenged."""
    return message.startswith(CHECKING_PREFIX) or message == CHECKING_PREFIX.rstrip()


def is_verdict(status: str, message: str) -> bool:
    """Whether a condition with this status and message was given up."""
    return status == "Unknown" and _VERDICT.match(message) is not None


def is_marked(status: str, message: str) -> bool:
    """Whether the checker's text stands in a condition where the operator's should."""
    return is_checking(message) or is_verdict(status, message)


def original(message: str) -> str:
    """The operator's own message, without any of the checker's text before it."""
    start = 0
    while mark := _MARK.match(message, start):
        start = mark.end()
    return message[start:]


def recorded_status(message: str) -> str | None:
    """The status that a condition had before the verdict; None without a verdict."""
    verdict = _VERDICT.match(message)
    return None if verdict is None else verdict["status"]


def recorded_silence(message: str) -> str | None:
    """For how long, in the verdict's words, nobody had answered; None without a verdict."""
    verdict = _VERDICT.match(message)
    return None if verdict is None else verdict["silence"]


def _duration(seconds: float) -> str:
    """Whole minutes where it is some, else whole seconds, rounded down so that it stays true."""
    whole = int(seconds)
    count, unit = (whole // 60, "minute") if whole and whole % 60 == 0 else (whole, "second")
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
