"""Where the repository's files lie, for tests that read them."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
DOCS = ROOT / "docs"
FIXTURES = ROOT.parent / "shared" / "fixtures"
"""Real data of others, which may not be there."""
