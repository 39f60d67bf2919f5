"""The error of this package."""


class OciError(Exception):
    """Bytes that are not the image that they should be; the text says what to do."""
