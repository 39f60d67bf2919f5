"""How an object says that it could not be reconciled: a condition, and one event.

An operator declares how the status of its objects says so (`StatusWriter`), and leaves the rest
to the runtime: what a reconcile raises is put into words here, written when it is not there yet,
and told by one event when it is written.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import msgspec

from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.metadata import is_going
from quarterdeck.controller.objects import Objects
from quarterdeck.controller.result import InvalidSpec
from quarterdeck.kube import AlreadyExists, ApiError, Forbidden, Invalid

T = TypeVar("T", bound=TypedObject | Object)

_REMEDIES: dict[type[ApiError], str] = {
    AlreadyExists: "rename one of the two",
    Forbidden: "allow it in the operator's role",
    Invalid: "change what the object asks for",
}
_NOT_BY_ROLE = "change what the object asks for, or what forbids it"


_REASON = re.compile("[A-Za-z]([A-Za-z0-9_,:]{0,125}[A-Za-z0-9_])?")
"""What the API takes as the reason of a condition, and of an event too."""
OTHER_WORDS_AFTER = timedelta(minutes=1)
"""The same reason in other words is told at most so often."""
REMEMBERED = 4096
"""Of how many objects a controller remembers what was told."""
MESSAGE_LIMIT = 4096
"""The most characters of a message; a condition takes 32768."""


class Fault(msgspec.Struct, frozen=True):
    """Why an object is not as it asks to be, in words for the one who wrote it."""

    reason: str
    """One word, as a condition's reason."""
    message: str


def fault_in(error: Exception) -> Fault | None:
    """What an error says about the object; None when it says nothing, and passes by itself."""
    if isinstance(error, InvalidSpec):
        return Fault("InvalidSpec", _readable(str(error)))
    if isinstance(error, ApiError):
        for kind, remedy in _REMEDIES.items():
            if isinstance(error, kind):
                # Who refuses it may be somebody's webhook, which says what it likes.
                reason = error.reason if _REASON.fullmatch(error.reason) else kind.__name__
                if isinstance(error, Forbidden) and not error.by_role:
                    remedy = _NOT_BY_ROLE
                return Fault(reason, f"{_readable(error.message)}: {remedy}")
    return None


def _readable(text: str) -> str:
    """The text as any condition takes it: not too long, and nothing but letters and lines."""
    if len(text) > MESSAGE_LIMIT:
        text = f"{text[:MESSAGE_LIMIT]}…"
    return "".join(
        it if it.isprintable() or it == "\n" else "\N{REPLACEMENT CHARACTER}" for it in text
    )


class StatusWriter(msgspec.Struct, Generic[T], frozen=True):
    """Where and how a controller's objects say what is wrong with them."""

    objects: Objects[T]
    """The objects that the keys of the controller name; `status` is declared for them."""
    status: Callable[[T, str, str, datetime], msgspec.Struct | Object]
    """The status with this reason and message at this time. It has the object's own conditions
    in it, and is the same again for the same fault."""


class Teller(Generic[T]):
    """Says on the objects of one controller what is wrong with them."""

    def __init__(
        self, writer: StatusWriter[T], events: Recorder, now: Callable[[], datetime]
    ) -> None:
        self._writer = writer
        self._events = events
        self._now = now
        self._told: dict[Key, tuple[Fault, datetime]] = {}

    async def tell(self, key: Key, fault: Fault) -> None:
        """Say it on the object, if it does not say so already; one that goes says nothing."""
        writer, now = self._writer, self._now()
        obj = writer.objects.get(key)
        if obj is None or is_going(obj):
            self._told.pop(key, None)
            return
        if self._says_so(key, obj, fault, now):
            return
        status = writer.status(obj, fault.reason, fault.message, now)
        if await writer.objects.set_status(obj, status):
            self._told.pop(key, None)
            self._told[key] = (fault, now)
            if len(self._told) > REMEMBERED:
                del self._told[next(iter(self._told))]
            self._events.event(obj, "Warning", fault.reason, fault.message, action="Reconcile")

    def _says_so(self, key: Key, obj: T, fault: Fault, now: datetime) -> bool:
        """Whether the object says the same in other words, and said so a short while ago.

        A webhook may have the number of the request in its words. To write them each time would
        wake the key each time, past its back-off, and be an event each time.
        """
        told, at = self._told.get(key, (fault, now))
        if told == fault or told.reason != fault.reason or fault.reason == "InvalidSpec":
            return False
        if now - at >= OTHER_WORDS_AFTER:
            return False
        said = self._writer.status(obj, told.reason, told.message, now)
        has = obj.get("status") if isinstance(obj, dict) else getattr(obj, "status", None)
        return bool(msgspec.to_builtins(has) == msgspec.to_builtins(said))
