"""Times as the API writes them: RFC 3339 in UTC, to the second."""

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """The moment as the API writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    """The moment that the API wrote, with or without fractions of a second."""
    return datetime.fromisoformat(text)
