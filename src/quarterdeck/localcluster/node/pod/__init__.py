"""The pods of this node: decisions, processes, and their status at the API server."""
