"""A pytest plugin, and its parts, for tests of operators against a real API server."""
