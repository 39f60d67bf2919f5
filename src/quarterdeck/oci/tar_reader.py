"""Reads a tar archive as a stream, with bounded memory; it unpacks nothing.

Archives of others may be hostile, and the standard library reads a header of any length into
memory. Here a name has at most 4 KiB, an extended header at most 128 KiB, and what is not
understood is an error.
"""

from collections.abc import Iterator

import msgspec

from quarterdeck.oci.blobs import Readable
from quarterdeck.oci.errors import OciError

BLOCK = 512
MAX_NAME = 4 << 10
MAX_EXTENDED = 128 << 10
MAX_ENTRIES = 200_000
_SKIP = 64 << 10

FILE, DIRECTORY = "file", "directory"
_KINDS = {
    b"0": FILE,
    b"\0": FILE,
    b"7": FILE,
    b"1": "hard link",
    b"2": "symbolic link",
    b"3": "character device",
    b"4": "block device",
    b"5": DIRECTORY,
    b"6": "pipe",
}
_LONG_NAME, _LONG_LINK, _PAX, _PAX_GLOBAL = b"L", b"K", b"x", b"g"


class TarEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry: its name as it stands there, what it is, and its size."""

    name: str
    kind: str
    """`file`, `directory`, or what it is otherwise."""
    size: int
    mode: int


class TarReader:
    """The entries of a tar archive; the bytes of the present entry come from `read`."""

    def __init__(self, source: Readable, *, max_entries: int = MAX_ENTRIES) -> None:
        self._source = source
        self._max_entries = max_entries
        self._left = 0
        self._padding = 0

    def __iter__(self) -> Iterator[TarEntry]:
        entries = 0
        while (entry := self._next()) is not None:
            entries += 1
            if entries > self._max_entries:
                raise OciError(f"an archive with more than {self._max_entries} entries")
            yield entry

    def read(self, size: int, /) -> bytes:
        """The next bytes of the present entry; fewer than asked for only at its end."""
        size = min(size, self._left)
        data = self._exactly(size)
        self._left -= size
        return data

    def _next(self) -> TarEntry | None:
        name: str | None = None
        size: int | None = None
        while (header := self._header()) is not None:
            type_ = header[156:157]
            length = _number(header[124:136])
            if type_ in (_LONG_NAME, _LONG_LINK):
                text = self._extended(length).split(b"\0", 1)[0]
                name = _text(text) if type_ == _LONG_NAME else name
            elif type_ in (_PAX, _PAX_GLOBAL):
                records = _records(self._extended(length))
                if type_ == _PAX:
                    name = _text(records[b"path"]) if b"path" in records else name
                    size = _decimal(records[b"size"]) if b"size" in records else size
            else:
                return self._entry(header, type_, name, length if size is None else size)
        if name is not None or size is not None:
            raise OciError("an archive that ends after an extended header; make it again")
        return None

    def _entry(self, header: bytes, type_: bytes, name: str | None, size: int) -> TarEntry:
        kind = _KINDS.get(type_, f"entry of type {type_!r}")
        # Links and devices have no content, whatever their size field says.
        self._left = size if kind == FILE or type_ not in _KINDS else 0
        self._padding = -self._left % BLOCK
        shown = _header_name(header) if name is None else name
        if len(shown) > MAX_NAME:
            raise OciError(f"an archive with a name of {len(shown)} characters")
        if kind == FILE and shown.endswith("/"):
            kind = DIRECTORY  # as archives from before POSIX write one
        return TarEntry(
            name=shown, kind=kind, size=self._left, mode=_number(header[100:108]) & 0o7777
        )

    def _header(self) -> bytes | None:
        """The next header; None at the end of the archive."""
        self._skip(self._left + self._padding)
        self._left = self._padding = 0
        header = self._exactly(BLOCK)
        if not header.strip(b"\0"):
            return None
        total = sum(header[:148]) + sum(header[156:]) + 8 * ord(" ")
        if _number(header[148:156]) != total:
            raise OciError("an archive with a broken header; it is damaged, or no tar archive")
        return header

    def _extended(self, length: int) -> bytes:
        if length > MAX_EXTENDED:
            raise OciError(f"an archive with an extended header of {length} bytes")
        data = self._exactly(length)
        self._skip(-length % BLOCK)
        return data

    def _skip(self, size: int) -> None:
        while size > 0:
            size -= len(self._exactly(min(size, _SKIP)))

    def _exactly(self, size: int) -> bytes:
        data = self._source.read(size)
        while len(data) < size:
            more = self._source.read(size - len(data))
            if not more:
                raise OciError("an archive that is cut off; fetch it or make it again")
            data += more
        return data


def _number(field: bytes) -> int:
    """A number in octal digits, or in binary where its first bit is set."""
    if field[0] & 0x80:
        if field[0] != 0x80:
            raise OciError("an archive with a negative number in a header")
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0", 1)[0].strip()
    if digits and not all(digit in b"01234567" for digit in digits):
        raise OciError("an archive with a header that has no number where one should be")
    return int(digits or b"0", 8)


def _decimal(text: bytes) -> int:
    if not text.isdigit() or len(text) > 18:
        raise OciError("an archive with a size that is no number")
    return int(text)


def _records(data: bytes) -> dict[bytes, bytes]:
    """The records of an extended header: `<length> <key>=<value>` and a line break each."""
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        blank = data.find(b" ", at, at + 8)
        length = data[at:blank]
        end = at + (int(length) if blank > 0 and length.isdigit() else 0)
        key, equals, value = data[blank + 1 : end - 1].partition(b"=")
        if not blank < end <= len(data) or data[end - 1 : end] != b"\n" or not equals:
            raise OciError("an archive with a broken extended header; make it again")
        if key.startswith(b"GNU.sparse"):
            raise OciError("an archive with a sparse file; make it again without --sparse")
        records[key] = value
        at = end
    return records


def _header_name(header: bytes) -> str:
    name = header[:100].split(b"\0", 1)[0]
    # GNU's own format has times where POSIX has the start of a long name.
    prefix = header[345:500].split(b"\0", 1)[0] if header[257:263] == b"ustar\0" else b""
    return _text(prefix + b"/" + name if prefix else name)


def _text(name: bytes) -> str:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        raise OciError(f"an archive with the name {name[:80]!r}, which is not UTF-8") from None
    if "\0" in text:
        raise OciError(f"an archive with the name {text[:80]!r}")
    return text
