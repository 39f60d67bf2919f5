"""File-based catalogs: reading, checking, building from bundles, and the next version."""
