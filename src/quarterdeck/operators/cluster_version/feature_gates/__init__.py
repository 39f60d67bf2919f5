"""Feature gates: which are on for this release, and reporting it where nobody else does."""
