"""Conditions of our objects, and the ClusterOperators with which operators report.

Conditions, versions and related objects are merged by pure functions; `Reporter` writes.
"""

from quarterdeck.status.conditions import (
    find_condition,
    merge_conditions,
    remove_conditions,
    set_condition,
)
from quarterdeck.status.report import (
    Report,
    Retired,
    all_of,
    condition,
    degraded,
    failing,
    standard_conditions,
)
from quarterdeck.status.reporter import Reporter
from quarterdeck.status.union import Inertia, inertia_ends, union_condition

__all__ = [
    "Inertia",
    "Report",
    "Reporter",
    "Retired",
    "all_of",
    "condition",
    "degraded",
    "failing",
    "find_condition",
    "inertia_ends",
    "merge_conditions",
    "remove_conditions",
    "set_condition",
    "standard_conditions",
    "union_condition",
]
