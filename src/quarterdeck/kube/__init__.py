"""Talking to Kubernetes: connection and auth, the client, watches, the object cache."""
