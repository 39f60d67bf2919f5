"""Notices cluster operators that no longer update their conditions, and says so on them."""
