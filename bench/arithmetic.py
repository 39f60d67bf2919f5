"""The little arithmetic that the tables need."""

from collections.abc import Sequence
from statistics import median

__all__ = ["median", "percentile", "ratio"]


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    if not values:
        raise ValueError("no values to take a percentile of")
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)  # rounded up
    return ordered[max(0, int(rank) - 1)]


def ratio(of: float | None, to: float | None) -> float | None:
    """How many times the second the first is; None where one is missing or nothing."""
    if of is None or not to:
        return None
    return of / to
