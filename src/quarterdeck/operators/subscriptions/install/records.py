"""Values packed into text, for annotations. Pure.

Whoever can write an object can write its annotations too, so what is unpacked may be anything.
"""

import base64
import binascii
import zlib
from typing import Any

import msgspec

MAX_TEXT = 2 << 20
"""The most bytes of a value, unpacked; etcd accepts objects up to 1.5 MiB."""
MAX_RECORD = 128 << 10
"""The most characters of the annotation: all annotations of an object have 256 KiB."""


def packed(value: Any) -> str | None:
    """The value as the text of an annotation; None if that would be too long."""
    text = msgspec.json.encode(value, order="sorted")
    record = base64.b64encode(zlib.compress(text, 6)).decode()
    return record if len(text) <= MAX_TEXT and len(record) <= MAX_RECORD else None


def unpacked(record: str) -> Any:
    """The value; None if the text is not that of one."""
    unpacker = zlib.decompressobj()
    try:
        text = unpacker.decompress(base64.b64decode(record, validate=True), MAX_TEXT)
        return msgspec.json.decode(text)
    except (binascii.Error, ValueError, zlib.error, msgspec.DecodeError, RecursionError):
        return None
