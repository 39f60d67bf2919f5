"""A container's process: what it sees, how it is started, and how it is entered later."""
