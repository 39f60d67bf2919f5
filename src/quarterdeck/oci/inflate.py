"""Unpacks a compressed layer piece by piece, up to a limit.

A few kilobytes can unpack to gigabytes, so never more than a piece is in memory, and a layer that
goes on after the limit is refused. Many small gzip members would take long, so they are counted.
"""

import zlib

from quarterdeck.oci.blobs import Readable
from quarterdeck.oci.errors import OciError

PIECE = 64 << 10
MAX_MEMBERS = 20_000
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_HEADER_AND_TRAILER = 16 + zlib.MAX_WBITS


class Inflated:
    """The bytes of a layer, unpacked if it is compressed; at most `limit` of them."""

    def __init__(self, source: Readable, limit: int) -> None:
        self._source = source
        self._limit = limit
        self._given = 0
        self._members = 0
        self._ready = b""
        self._input = _read(source, PIECE)
        if self._input.startswith(_ZSTD):
            raise OciError("a layer that is packed with zstd; push the image with gzip")
        self._gzip = zlib.decompressobj(_HEADER_AND_TRAILER) if self._is_gzip() else None
        self._plain = self._gzip is None

    def read(self, size: int, /) -> bytes:
        """The next bytes, as many as asked for; fewer only at the end."""
        parts: list[bytes] = []
        while size > 0 and (piece := self._ready or self._next()):
            parts.append(piece[:size])
            self._ready = piece[size:]
            size -= len(parts[-1])
        return b"".join(parts)

    def _next(self) -> bytes:
        piece = self._next_plain() if self._plain else self._next_inflated()
        self._given += len(piece)
        if self._given > self._limit:
            raise OciError(
                f"a layer that unpacks to more than {self._limit >> 20} MiB; a release has only "
                f"manifests in it"
            )
        return piece

    def _next_plain(self) -> bytes:
        piece = self._input
        self._input = _read(self._source, PIECE) if piece else b""
        return piece

    def _next_inflated(self) -> bytes:
        while True:
            if self._gzip is None and not self._begin_member():
                return b""
            assert self._gzip is not None  # noqa: S101 - for the type checker
            if not self._input:
                self._input = _read(self._source, PIECE)
                if not self._input:
                    raise OciError("a layer that is cut off; fetch it or push it again")
            try:
                piece = self._gzip.decompress(self._input, PIECE)
            except zlib.error as error:
                raise OciError(f"a layer that cannot be unpacked: {error}; push it again") from None
            if self._gzip.eof:
                self._input = self._gzip.unused_data
                self._gzip = None
            else:
                self._input = self._gzip.unconsumed_tail
            if piece:
                return piece

    def _begin_member(self) -> bool:
        """Begin the next gzip member; False at the end."""
        if not self._input:
            self._input = _read(self._source, PIECE)
        if not self._input:
            return False
        self._members += 1
        if self._members > MAX_MEMBERS or not self._is_gzip():
            raise OciError("a layer with something else after its gzip data; push it again")
        self._gzip = zlib.decompressobj(_HEADER_AND_TRAILER)
        return True

    def _is_gzip(self) -> bool:
        # The second byte may come with the next piece; zlib refuses what is none.
        return self._input[:2] == _GZIP[: max(1, len(self._input[:2]))]


def _read(source: Readable, size: int) -> bytes:
    """As many bytes as asked for, unless the source ends."""
    data = source.read(size)
    while data and len(data) < size and (more := source.read(size - len(data))):
        data += more
    return data
