"""Reads the files of a catalog: from a directory, or from a ConfigMap. They may be hostile.

Only regular files inside the directory are read, and sizes are limited.
"""

import base64
import binascii
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path

from quarterdeck.api.meta import Object
from quarterdeck.operators.subscriptions.catalog.model import CatalogFinding

ENDINGS = (".yaml", ".yml", ".json")
MAX_FILE = 16 << 20
MAX_TOTAL = 512 << 20
"""The most bytes of a catalog in a directory."""
MAX_IN_CONFIG_MAP = 64 << 20
"""The most bytes of a catalog in a ConfigMap, decompressed: users can write those."""
MAX_FILES = 20_000

TextFile = tuple[str, str]
"""The name and the text of a file."""


def directory_files(directory: Path) -> Iterator[TextFile | CatalogFinding]:
    """The files below the directory, in a fixed order; links are ignored."""
    total = count = 0
    if not directory.is_dir():
        yield _finding(str(directory), "is no directory", "name a directory with a catalog")
        return
    for parent, directories, names in os.walk(directory, followlinks=False):
        directories.sort()
        for name in sorted(names):
            path = Path(parent) / name
            if not name.endswith(ENDINGS):
                continue
            shown = str(path.relative_to(directory))
            count += 1
            found = _read(path, shown)
            total += len(found[1]) if isinstance(found, tuple) else 0
            if count > MAX_FILES or total > MAX_TOTAL:
                limit = f"{MAX_FILES:,} files or {MAX_TOTAL >> 20} MiB"
                yield _finding(shown, f"the catalog has more than {limit}", "split the catalog")
                return
            yield found


def config_map_files(config_map: Object) -> Iterator[TextFile | CatalogFinding]:
    """The files in a ConfigMap: each key of `data`, and each `.gz` of `binaryData`."""
    name = config_map["metadata"]["name"]
    left = MAX_IN_CONFIG_MAP
    for key, text in sorted((config_map.get("data") or {}).items()):
        yield f"{name}/{key}", text
    for key, encoded in sorted((config_map.get("binaryData") or {}).items()):
        file = f"{name}/{key}"
        if not key.endswith(".gz"):
            yield _finding(file, "is not compressed", "compress it with gzip and name it .gz")
            continue
        if left <= 0:
            most = f"{MAX_IN_CONFIG_MAP >> 20} MiB of text"
            yield _finding(file, f"the files before it have {most} already", "split the catalog")
            return
        found = _unpacked(file, encoded, min(left, MAX_FILE))
        yield found
        left -= MAX_FILE if isinstance(found, CatalogFinding) else len(found[1])


def _unpacked(file: str, encoded: str, limit: int) -> TextFile | CatalogFinding:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        # One byte more: 0 would mean no limit.
        data = unpacker.decompress(base64.b64decode(encoded, validate=True), limit + 1)
        text = data.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError) as error:
        return _finding(file, f"cannot be decompressed: {error}", "compress UTF-8 text with gzip")
    if len(data) > limit:
        return _finding(file, f"has more than {limit >> 20} MiB of text", "split the catalog")
    return file.removesuffix(".gz"), text


def _read(path: Path, shown: str) -> TextFile | CatalogFinding:
    try:
        # Without O_NONBLOCK, opening a pipe would wait for its writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(path, flags), "rb") as file:  # noqa: PTH123 - a descriptor, not a path
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return _finding(shown, "is no regular file", "remove it")
            data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            return _finding(shown, f"has more than {MAX_FILE >> 20} MiB", "split the file")
        return shown, data.decode()
    except UnicodeDecodeError as error:
        return _finding(shown, f"is not UTF-8: {error.reason}", "write it as UTF-8")
    except OSError as error:
        return _finding(shown, f"cannot be read: {error.strerror}", "replace it by a regular file")


def _finding(file: str, message: str, remedy: str) -> CatalogFinding:
    return CatalogFinding(file=file, entry="", message=message, remedy=remedy)
