"""The meaning of an image's name on this node, which pulls no images.

A repository that ends in `quarterdeck` is this installation. So are `quarterdeck-release`, from
which the cluster version operator of a release runs, and `quarterdeck-router`, with Debian's
HAProxy and rsyslog in its PATH. The admission policy in `placement` uses the same pattern in CEL.
"""

import os
import re
import sys
from pathlib import Path, PurePosixPath

import msgspec

PATTERN = r"^(.*/)?quarterdeck(-router|-release)?(:[^/]*)?(@.*)?$"
"""A pattern in the common syntax of Python and CEL's RE2."""

_SYSTEM_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")


class ImageProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The entrypoint and variables that a container gets from its image."""

    entrypoint: tuple[str, ...]
    variables: dict[str, str]


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """The paths of this installation of Quarterdeck."""

    programs: str
    """The directory of the `quarterdeck` program."""
    directories: tuple[PurePosixPath, ...]
    """The directories that it needs to run."""


def this_installation() -> Installation:
    """The running installation: its environment, its interpreter and its import path."""
    imported = {Path(entry) for entry in sys.path if Path(entry).is_dir() and entry}
    places = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.prefix).resolve(), *imported}
    return Installation(
        programs=os.path.dirname(sys.executable),  # noqa: PTH120  # not resolved: a venv's own
        directories=tuple(sorted(PurePosixPath(place) for place in places)),
    )


def find_image(name: str, installation: Installation) -> ImageProcess | None:
    """The image of this name; None if it is not ours."""
    if not re.match(PATTERN, name):
        return None
    path = os.pathsep.join((installation.programs, *_SYSTEM_PATH))
    return ImageProcess(
        entrypoint=(f"{installation.programs}/quarterdeck",),
        variables={"PATH": path, "HOME": "/"},
    )
