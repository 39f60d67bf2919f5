"""Feature gates: which ones are on for this release, and the status that reports them."""
