"""Installs what a ClusterServiceVersion describes."""
