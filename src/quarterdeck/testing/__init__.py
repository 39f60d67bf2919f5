"""Testing operators against a real API server: the pytest plugin, and what it is made of."""
