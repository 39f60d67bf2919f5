"""Tar archives for tests, also ones that no tool writes."""

import io
import tarfile
from collections.abc import Iterable


def entry(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """An entry of a tar archive; `fields` are those of TarInfo."""
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def tar(
    *entries: tuple[tarfile.TarInfo, bytes], format_: int = tarfile.PAX_FORMAT, end: bool = True
) -> bytes:
    """A tar archive of these entries."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format_) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
        size = archive.offset
    return out.getvalue() if end else out.getvalue()[:size]


class Dribble:
    """Bytes that come in pieces of any size, as from a network."""

    def __init__(self, data: bytes, sizes: Iterable[int] = (7, 512, 3)) -> None:
        self._data = io.BytesIO(data)
        self._sizes = list(sizes)
        self._next = 0

    def read(self, size: int, /) -> bytes:
        self._next += 1
        return self._data.read(min(size, self._sizes[self._next % len(self._sizes)]))
