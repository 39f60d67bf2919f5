"""The results of decoding, and its limits.

Input may be hostile, so depth, size and number are limited, for YAML and JSON alike.
"""

from typing import Any

import msgspec

MAX_DEPTH = 100
MAX_NODES = 200_000
"""The most values in a document; an alias counts at each use. The largest real CRDs have 40,000."""
MAX_TEXT = 8 << 20
"""The most characters in a document, counted likewise; etcd accepts objects up to 1.5 MiB."""
MAX_DOCUMENTS = 1000
"""The most documents in a file."""

TOO_DEEP = (f"nested more than {MAX_DEPTH} deep", "flatten it")
TOO_LARGE = (
    f"more than {MAX_NODES:,} values, aliases expanded",
    "split the document, or write out what its aliases stand for",
)
TOO_LONG = (
    f"more than {MAX_TEXT >> 20} MiB of text, aliases expanded",
    "split the document, or write out what its aliases stand for",
)
TOO_MANY = (f"more than {MAX_DOCUMENTS} documents", "split the file")


class Document(msgspec.Struct, frozen=True):
    """A document and its value."""

    number: int
    line: int
    value: Any
    nodes: int = 0
    """How many values it has, those of an alias counted at each use."""
    text: int = 0
    """How many characters it has, counted likewise."""


class Refusal(msgspec.Struct, frozen=True):
    """A refused document: why, and the remedy."""

    number: int
    line: int
    message: str
    remedy: str


class RefusedError(Exception):
    """Raised inside a decoder, with a line counted from the start of the document."""

    def __init__(self, line: int, message: str, remedy: str) -> None:
        super().__init__(message)
        self.line, self.message, self.remedy = line, message, remedy


def quoted(text: str) -> str:
    """The text in quotes, shortened if it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
