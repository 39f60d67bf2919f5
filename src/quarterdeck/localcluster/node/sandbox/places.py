"""Where else on the machine a directory can be seen: it, or what is in it, may be mounted twice.

Pure, given the text of `/proc/self/mountinfo`.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath as Path
from typing import NamedTuple


class _Mounted(NamedTuple):
    device: str
    root: Path
    """Which directory of its file system is mounted."""
    at: Path


def other_places(path: Path, mountinfo: str) -> list[Path]:
    """The paths, other than its own, at which a file or directory, or a part of it, is seen."""
    mounts = [_parse(line) for line in mountinfo.splitlines()]
    around = [mount for mount in mounts if path.is_relative_to(mount.at)]
    if not around:
        return []
    # Of several at one place the last is the one that is seen.
    own = max(enumerate(around), key=lambda each: (len(each[1].at.parts), each[0]))[1]
    inside = own.root / path.relative_to(own.at)
    found = {each for mount in mounts if mount.device == own.device for each in _at(mount, inside)}
    return sorted(each for each in found if not each.is_relative_to(path))


def _at(mount: _Mounted, inside: Path) -> Iterator[Path]:
    """Where a mount shows a path of its file system, or a part of it."""
    if inside.is_relative_to(mount.root):
        yield mount.at / inside.relative_to(mount.root)
    elif mount.root.is_relative_to(inside):
        yield mount.at


def _parse(line: str) -> _Mounted:
    _, _, device, root, at, *_ = line.split(" ")
    return _Mounted(device, _path(root), _path(at))


def _path(escaped: str) -> Path:
    return Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), escaped))
