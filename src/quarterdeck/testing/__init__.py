"""The pytest plugin on top of the local cluster, for our tests and for others'."""
