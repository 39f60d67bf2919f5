"""A container's process: its file system, its start, and commands that enter it later."""
