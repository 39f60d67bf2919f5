"""Checks that bytes are what a descriptor says, while they come. Pure but for the file to read."""

import hashlib
from typing import BinaryIO, Protocol

from quarterdeck.oci.errors import OciError
from quarterdeck.oci.model import Descriptor


class Readable(Protocol):
    """What bytes are read from; fewer than asked for come only at the end."""

    def read(self, size: int, /) -> bytes:
        """The next bytes; none at the end."""
        ...


class BlobCheck:
    """Compares size and digest of bytes that are given piece by piece."""

    def __init__(self, descriptor: Descriptor) -> None:
        self._wanted = descriptor
        self._hash = hashlib.sha256()
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes; OciError as soon as there are more than there should be."""
        self._size += len(data)
        if self._size > self._wanted.size:
            raise OciError(
                f"{self._wanted.digest} is larger than the {self._wanted.size} bytes of its "
                f"manifest; push the image again"
            )
        self._hash.update(data)

    def finish(self) -> None:
        """OciError if bytes are missing, or they are other ones."""
        if self._size < self._wanted.size:
            raise OciError(
                f"{self._wanted.digest} ends after {self._size} of {self._wanted.size} bytes; "
                f"fetch it again, or push the image again"
            )
        if f"sha256:{self._hash.hexdigest()}" != self._wanted.digest:
            raise OciError(
                f"the content of {self._wanted.digest} has the digest "
                f"sha256:{self._hash.hexdigest()}; find out who changed it, then push it again"
            )


def check_blob(data: bytes, descriptor: Descriptor) -> bytes:
    """The same bytes; OciError if they are not what the descriptor says."""
    check = BlobCheck(descriptor)
    check.feed(data)
    check.finish()
    return data


def check_file(file: BinaryIO, descriptor: Descriptor) -> None:
    """Read a file to its end; OciError if it is not what the descriptor says."""
    check = BlobCheck(descriptor)
    while data := file.read(1 << 20):
        check.feed(data)
    check.finish()
