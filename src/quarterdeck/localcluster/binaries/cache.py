"""The cache directory of programs: finds, verifies and installs them.

A program is a file with a record beside it. It is used only if its contents have the recorded
checksum. Hashing all programs takes 1.5 s, so a verified file gets a seal: its inode, size and
times, valid until the next boot. A write to the file changes its change time. Then the seal does
not match, and the file is hashed again.

Readers need no lock. A writer holds the lock of the directory (see `lock`).
"""

import hashlib
import os
import shutil
from pathlib import Path
from typing import TypeVar

import msgspec

from quarterdeck.localcluster.binaries.catalog import Program
from quarterdeck.localcluster.binaries.errors import explained

_T = TypeVar("_T")

FINISHED = "build.done"
"""The name of a build's directory during its removal."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The version, checksum and origin of an installed program."""

    version: str
    platform: str
    sha256: str
    size: int
    source: str


class Seal(msgspec.Struct, frozen=True):
    """The attributes of a file when its checksum was verified."""

    sha256: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    boot: str


class FoundProgram(msgspec.Struct, frozen=True):
    """A verified program."""

    path: Path
    source: str


class Missing(msgspec.Struct, frozen=True):
    """There is no program, or one of another version or platform."""


class Corrupt(msgspec.Struct, frozen=True):
    """A file whose contents do not match its record."""

    path: Path


class ProgramCache:
    """The programs of one version for one platform, in one directory."""

    def __init__(self, directory: Path, platform: str) -> None:
        self.directory = directory
        self.platform = platform

    def tidy(self) -> None:
        """Remove a build directory whose removal was interrupted."""
        shutil.rmtree(self.directory / FINISHED, ignore_errors=True)

    def look(self, program: Program) -> FoundProgram | Missing | Corrupt:
        """The program in the cache, if it matches its record."""
        path = self.directory / program.name
        record = _read(self._record(program.name), Record)
        if record is None or not path.is_file():
            return Missing()
        if (record.version, record.platform) != (program.version, self.platform):
            return Missing()
        if self._sound(path, record):
            return FoundProgram(path, record.source)
        return Corrupt(path)

    def install(self, program: Program, staged: Path, source: str) -> FoundProgram:
        """Move a finished program into the cache in one step, and return it.

        A crash before the record is written leaves a program with no record or an older one; the
        next run installs it again. `staged` must be on the same file system.
        """
        path = self.directory / program.name
        with explained(self.directory):
            staged.chmod(0o755)
            with staged.open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                os.fsync(file.fileno())
                size = os.fstat(file.fileno()).st_size
            staged.replace(path)
            record = Record(
                version=program.version,
                platform=self.platform,
                sha256=sha256,
                size=size,
                source=source,
            )
            _write(self._record(program.name), record)
        return FoundProgram(path, source)

    def _sound(self, path: Path, record: Record) -> bool:
        seal_path = self._record(path.name).with_suffix(".seal")
        with path.open("rb") as file:
            before = _seal(file.fileno(), record.sha256)
            if before.size != record.size:
                return False
            if _read(seal_path, Seal) == before:
                return os.access(path, os.X_OK)
            if hashlib.file_digest(file, "sha256").hexdigest() != record.sha256:
                return False
            unchanged = _seal(file.fileno(), record.sha256) == before
        if not os.access(path, os.X_OK):
            return False
        if unchanged:
            try:
                _write(seal_path, before)
            except OSError:
                # In a read-only cache each run hashes the file again.
                return True
        return True

    def _record(self, name: str) -> Path:
        return self.directory / "records" / f"{name}.json"


def _seal(descriptor: int, sha256: str) -> Seal:
    stat = os.fstat(descriptor)
    return Seal(sha256, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, _boot())


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _read(path: Path, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        return None


def _write(path: Path, value: Record | Seal) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # The process id keeps apart two readers that write the same seal.
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with new.open("wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    for directory in (path.parent, path.parent.parent):
        _sync_directory(directory)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
