"""Pods from files: read, checked, and mirrored to the API server."""
