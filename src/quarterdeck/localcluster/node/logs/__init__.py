"""The logs of containers: written, read and served."""
