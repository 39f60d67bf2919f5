"""The errors of requests to a registry.

    RegistryError
    ├── RegistryUnreachable    no answer, or none in time; the same request may succeed later
    ├── RegistryBusy           429 or 503, longer than we wait
    ├── NotAuthorized          401 or 403
    ├── ImageNotFound          404
    └── ContentInvalid         not what its digest or descriptor says, or larger than any real one

Each has a reason for programs, and a remedy.
"""

# ruff: noqa: N818 - the names say what is the case

from collections.abc import Sequence

from quarterdeck.terminal import visible


class RegistryError(Exception):
    """The root of the tree."""

    reason = "RegistryError"

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message, remedy)
        # It may quote a manifest, which has any characters.
        self.message = visible(message)
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}"


class RegistryUnreachable(RegistryError):
    """No answer, or none in time."""

    reason = "RegistryUnreachable"


class RegistryBusy(RegistryError):
    """The registry asks to come back later."""

    reason = "RegistryBusy"

    def __init__(self, message: str, remedy: str, *, again_in: float = 0.0) -> None:
        super().__init__(message, remedy)
        self.again_in = again_in
        """The seconds that it asks for; 0 if it does not say."""


class NotAuthorized(RegistryError):
    """The registry refuses the credentials, or there are none."""

    reason = "NotAuthorized"


class ImageNotFound(RegistryError):
    """The registry has no such image."""

    reason = "ImageNotFound"


class ContentInvalid(RegistryError):
    """The content is not what was asked for."""

    reason = "ContentInvalid"


def everywhere(errors: Sequence[RegistryError]) -> RegistryError:
    """The error of what no place has: that of the last place, with what the others say.

    The last place is the registry that the image names, the others are its mirrors. Where there is
    no way to the registry, only the error of a mirror tells what can be mended.
    """
    *mirrors, last = errors
    for error in mirrors:
        last.message += f"; its mirror: {error.message}"
        last.remedy += f"; for the mirror: {error.remedy}"
    return last
