"""What came of looking at one manifest."""

from typing import TypeAlias

import msgspec


class Done(msgspec.Struct, frozen=True):
    """The object is as the manifest says, and ready; a note is worth knowing all the same."""

    reason: str = ""
    message: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """Something is on its way; looked at again when the object changes, and after a while."""

    reason: str
    message: str


class Failed(msgspec.Struct, frozen=True):
    """Somebody has to act, or it goes away by itself; tried again after a growing time."""

    reason: str
    message: str


Outcome: TypeAlias = Done | Waiting | Failed

DONE = Done()
