"""The measurements: each starts what it measures, and gives rows, verdicts and notes."""
