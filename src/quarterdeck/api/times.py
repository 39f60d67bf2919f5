"""Times as the API writes them: UTC, to the second."""

from datetime import UTC, datetime


def format_time(moment: datetime) -> str:
    """The moment as the API writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
