"""Applies the log level of the ClusterVersionOperator object at once."""
