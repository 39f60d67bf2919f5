"""Which of the machine's mounts a node only reads. Pure, given the text of mountinfo."""

import re
from pathlib import PurePosixPath as Path

from quarterdeck.localcluster.real_nodes import libc

OWN = tuple(map(Path, ("/proc", "/sys", "/dev", "/run", "/var")))
"""What a node has itself, and what the kernel has there."""
_KEPT = {"nosuid": libc.MS_NOSUID, "nodev": libc.MS_NODEV, "noexec": libc.MS_NOEXEC}


def machines_mounts(mountinfo: str) -> dict[str, int]:
    """The flags of each mount that is the machine's, by its path."""
    found = {}
    for line in mountinfo.splitlines():
        _, _, _, _, escaped, options, *_ = line.split(" ")
        path = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), escaped)
        if not any(Path(path).is_relative_to(own) for own in OWN):
            names = options.split(",")
            found[path] = sum(flag for name, flag in _KEPT.items() if name in names)
    return found
