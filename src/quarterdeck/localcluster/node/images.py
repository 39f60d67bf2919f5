"""What an image's name means on this node: nothing is pulled, images are names.

A repository that ends in `quarterdeck` is this installation; one that ends in
`quarterdeck-router` is the same with Debian's HAProxy and rsyslog on its path. The admission
policy in `placement` asks the same question in CEL, with the same pattern.
"""

import os
import re
import sys
from pathlib import Path, PurePosixPath

import msgspec

PATTERN = r"^(.*/)?quarterdeck(-router)?(:[^/]*)?(@.*)?$"
"""In the syntax that Python and CEL's RE2 share."""

_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """What a container gets from its image."""

    entrypoint: tuple[str, ...]
    variables: dict[str, str]


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """Where this installation of Quarterdeck lies."""

    programs: str
    """The directory of the `quarterdeck` program."""
    directories: tuple[PurePosixPath, ...]
    """What must be seen for it to run."""


def this_installation() -> Installation:
    """The installation that runs now: its environment, its interpreter, what it imports from."""
    imported = {Path(entry) for entry in sys.path if Path(entry).is_dir() and entry}
    places = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.prefix).resolve(), *imported}
    return Installation(
        programs=os.path.dirname(sys.executable),  # noqa: PTH120  # not resolved: a venv's own
        directories=tuple(sorted(PurePosixPath(place) for place in places)),
    )


def find_image(name: str, installation: Installation) -> Image | None:
    """What the name stands for; None for one that is not ours."""
    if not re.match(PATTERN, name):
        return None
    path = os.pathsep.join((installation.programs, *_SYSTEM_PATH))
    return Image(
        entrypoint=(f"{installation.programs}/quarterdeck",),
        variables={"PATH": path, "HOME": "/"},
    )
