"""Mistakes in an operator's code: each error begins with the author's file and line."""

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

_HERE = str(Path(__file__).parent)


class Mistake(TypeError):  # noqa: N818 - the author's, not one of this program
    """The operator's code is wrong; the message says where, and what to write instead."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}")


class WrongReturn(Mistake):
    """A function of the operator returned something else than it should."""

    def __init__(self, function: Callable[..., Any], returned: object, remedy: str) -> None:
        name = getattr(function, "__qualname__", repr(function))
        super().__init__(place_of(function), f"{name} returned {returned!r:.200}; {remedy}")


class NotSelected(Mistake):
    """The operator writes an object that its own cache would not show."""

    def __init__(self, what: str, field: str, selection: str) -> None:
        super().__init__(
            place_of_caller(),
            f"{what} does not match the selection that its objects were asked for with "
            f"({selection}), so it would never be seen again; set its {field}",
        )


class WrongWatches(Mistake):
    """The watches of a controller are something else."""

    def __init__(self, controller: str, watches: object) -> None:
        super().__init__(
            place_of_caller(),
            f"the watches of the controller {controller} are {watches!r:.200}; "
            "write a list of Watch(objects)",
        )


class NoKey(Mistake):
    """The operator names an object by something else than its key."""

    def __init__(self, given: object) -> None:
        super().__init__(
            place_of_caller(), f"{given!r:.200} is no key; write [Key(namespace, name), ...]"
        )


class UnknownWrite(Mistake):
    """The operator declares a call that does not exist."""

    def __init__(self, write: str, known: Iterable[str]) -> None:
        super().__init__(
            place_of_caller(), f"`writes` has {write!r:.200}; use some of {', '.join(known)}"
        )


class WrongSetup(Mistake):
    """The operator's `setup` cannot be called with what its declaration gives it."""

    def __init__(self, setup: Callable[..., Any], given: Iterable[str], settings: str) -> None:
        remedy = "" if settings else ", or name its settings in `settings` of the declaration"
        super().__init__(
            place_of(setup), f"it is called as setup({', '.join(given)}): take just that{remedy}"
        )


def place_of(function: Callable[..., Any]) -> str:
    """File and line of a function; its name where it has none."""
    inner = getattr(function, "func", function)
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)


def place_of_caller() -> str:
    """File and line that called into this package."""
    for frame, line in traceback.walk_stack(None):
        if not frame.f_code.co_filename.startswith(_HERE):
            return f"{frame.f_code.co_filename}:{line}"
    return "an unknown place"
