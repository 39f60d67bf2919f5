"""Reports on an object why it could not be reconciled: a condition, and one event.

An operator declares how a fault is written into the status of its objects (`StatusWriter`). The
runtime does the rest: it turns what a reconcile raises into reason and message, writes the status
if it differs, and records one event when it has written it.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import msgspec

from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.metadata import is_being_deleted
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
"""What the API accepts as the reason of a condition, and of an event too."""
REWORDED_INTERVAL = timedelta(minutes=1)
"""The least time between two writes of the same reason with another message."""
MAX_REMEMBERED = 4096
"""The most objects whose last fault a controller remembers."""
MESSAGE_LIMIT = 4096
"""The most characters of a message; a condition takes 32768."""


class Fault(msgspec.Struct, frozen=True):
    """Why an object could not be reconciled, for the author of the object."""

    reason: str
    """One word: the reason of a condition."""
    message: str


def fault_of(error: Exception) -> Fault | None:
    """The fault of the object that an error is about; None for an error that is not about it."""
    if isinstance(error, InvalidSpec):
        return Fault("InvalidSpec", readable(str(error)))
    if isinstance(error, ApiError):
        for kind, remedy in _REMEDIES.items():
            if isinstance(error, kind):
                # A webhook that refuses a request may give any text as the reason.
                reason = error.reason if _REASON.fullmatch(error.reason) else kind.__name__
                if isinstance(error, Forbidden) and not error.by_role:
                    remedy = _NOT_BY_ROLE
                return Fault(reason, f"{readable(error.message)}: {remedy}")
    return None


def readable(text: str) -> str:
    """The text as the API accepts it in a condition: limited in length, printable or newline."""
    if len(text) > MESSAGE_LIMIT:
        text = f"{text[:MESSAGE_LIMIT]}…"
    return "".join(
        it if it.isprintable() or it == "\n" else "\N{REPLACEMENT CHARACTER}" for it in text
    )


class StatusWriter(msgspec.Struct, Generic[T], frozen=True):
    """How a fault is written into the status of a controller's objects."""

    objects: Objects[T]
    """The objects of the controller's keys, with the write `status` declared."""
    status: Callable[[T, str, str, datetime], msgspec.Struct | Object]
    """Returns the status with this reason and message at this time. It keeps the object's other
    conditions, and returns the same status for the same fault."""


class FaultWriter(Generic[T]):
    """Writes faults into the status of one controller's objects."""

    def __init__(
        self, writer: StatusWriter[T], events: Recorder, now: Callable[[], datetime]
    ) -> None:
        self._writer = writer
        self._events = events
        self._now = now
        self._written: dict[Key, tuple[Fault, datetime]] = {}

    async def write_fault(self, key: Key, fault: Fault) -> None:
        """Write the fault and record an event, unless done already or being deleted."""
        writer, now = self._writer, self._now()
        obj = writer.objects.get(key)
        if obj is None or is_being_deleted(obj):
            self._written.pop(key, None)
            return
        if self._is_reworded(key, obj, fault, now):
            return
        status = writer.status(obj, fault.reason, fault.message, now)
        if await writer.objects.set_status(obj, status):
            self._written.pop(key, None)
            self._written[key] = (fault, now)
            if len(self._written) > MAX_REMEMBERED:
                del self._written[next(iter(self._written))]
            self._events.event(obj, "Warning", fault.reason, fault.message, action="Reconcile")

    def _is_reworded(self, key: Key, obj: T, fault: Fault, now: datetime) -> bool:
        """Whether the object has the same reason in other words, written a short time ago.

        A webhook may have the number of the request in its message. Writing it each time would wake
        the key without back-off, and record an event each time.
        """
        last, at = self._written.get(key, (fault, now))
        if last == fault or last.reason != fault.reason or fault.reason == "InvalidSpec":
            return False
        if now - at >= REWORDED_INTERVAL:
            return False
        written = self._writer.status(obj, last.reason, last.message, now)
        has = obj.get("status") if isinstance(obj, dict) else getattr(obj, "status", None)
        return bool(msgspec.to_builtins(has) == msgspec.to_builtins(written))
