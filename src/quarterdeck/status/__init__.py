"""Conditions of our objects: set, merge, union; used by every operator."""
