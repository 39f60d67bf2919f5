"""Conditions of our objects: set, merge, union; used by every operator."""

from quarterdeck.status.conditions import find_condition, set_condition

__all__ = ["find_condition", "set_condition"]
