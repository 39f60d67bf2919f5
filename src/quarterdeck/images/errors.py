"""The error of this package."""


class BuildError(Exception):
    """An image cannot be built here; the text says what to do."""
