"""Events about objects, in `events.k8s.io`, that never hold a reconcile up.

The same thing said again about the same object becomes a series: the first is written at
once, what follows is counted and written at most once a minute. An object that has too
much to say is cut short, and so is the whole process. Events are help for people, not
state: one that cannot be written is dropped and counted, never retried.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Literal

import msgspec

from quarterdeck.api.meta import EVENTS, Key, Object, TypedObject
from quarterdeck.controller.election import micro_time
from quarterdeck.controller.metadata import reference_to
from quarterdeck.controller.rate import TokenBucket
from quarterdeck.controller.tasks import endless
from quarterdeck.kube import AlreadyExists, Client, KubeError, NotFound
from quarterdeck.log import get_logger

log = get_logger("controller.events")

NOTE_LIMIT = 1024
"""The API server refuses a note of more bytes."""


class EventKey(msgspec.Struct, frozen=True):
    """What makes two events the same one."""

    uid: str
    namespace: str
    name: str
    type: str
    reason: str
    action: str
    note: str
    once: str = ""
    """What happened, where several processes may see it: the first to say so is the only one."""


class _Series:
    """One event on the server and what has been counted since it was written."""

    __slots__ = ("count", "last", "name", "namespace", "written_at", "written_count")

    def __init__(self, namespace: str, name: str, now: float) -> None:
        self.namespace = namespace
        self.name = name
        self.written_at = now
        self.count = self.written_count = 1
        self.last: datetime | None = None


class Create(msgspec.Struct, frozen=True):
    """Write a new event."""

    event: Object


class Extend(msgspec.Struct, frozen=True):
    """Write how often an event was seen by now."""

    key: Key
    series: Object


class EventBook:
    """Which events are written, and when. Pure: both clocks are passed in."""

    FLUSH = 60.0
    """Seconds between two writes of one series."""
    FORGET = 360.0
    """Seconds without a write after which the same thing is a new event."""
    REMEMBERED = 4096
    """How many events are told apart."""

    def __init__(self, *, controller: str, instance: str) -> None:
        self._controller = controller
        self._instance = instance[:128]
        self._known: OrderedDict[EventKey, _Series] = OrderedDict()
        self._per_object: OrderedDict[tuple[str, str, str], TokenBucket] = OrderedDict()
        self._overall = TokenBucket(rate=10, burst=200)
        self._number = 0
        self.dropped = 0

    def record(self, key: EventKey, about: Object, now: float, wall: datetime) -> Create | None:
        """The event to write now; None when it is counted only, or cut short."""
        series = self._known.get(key)
        if series is not None and now - series.written_at < self.FORGET:
            series.count += 1
            series.last = wall
            return None
        if not self._may_speak(key, now):
            self.dropped += 1
            return None
        self._number += 1
        # Events go where their object is; those of cluster-scoped ones into `default`.
        namespace = key.namespace or "default"
        name = f"{key.name[:200]}.{int(wall.timestamp() * 1e6):x}{self._number:x}"
        if key.once:
            what = "/".join((key.uid, key.type, key.reason, key.once))
            name = f"{key.name[:200]}.{hashlib.sha256(what.encode()).hexdigest()[:16]}"
        self._known[key] = _Series(namespace, name, now)
        self._known.move_to_end(key)
        while len(self._known) > self.REMEMBERED:
            self._known.popitem(last=False)
        return Create(self._event(key, about, Key(namespace, name), wall))

    def due(self, now: float) -> list[Extend]:
        """The series that have grown and were not written for a while; forgets what is quiet."""
        grown: list[Extend] = []
        for key, series in list(self._known.items()):
            if now - series.written_at < self.FLUSH:
                continue
            if series.count > series.written_count and series.last is not None:
                series.written_at, series.written_count = now, series.count
                told = {"count": series.count, "lastObservedTime": micro_time(series.last)}
                grown.append(Extend(Key(series.namespace, series.name), told))
            elif now - series.written_at >= self.FORGET:
                del self._known[key]
        for who, bucket in list(self._per_object.items()):
            if bucket.is_full(now):
                del self._per_object[who]
        return grown

    def _may_speak(self, key: EventKey, now: float) -> bool:
        who = (key.uid, key.namespace, key.name)
        bucket = self._per_object.setdefault(who, TokenBucket(rate=1 / 60, burst=25))
        self._per_object.move_to_end(who)
        while len(self._per_object) > self.REMEMBERED:
            self._per_object.popitem(last=False)
        return bucket.take(now) and self._overall.take(now)

    def _event(self, key: EventKey, about: Object, at: Key, wall: datetime) -> Object:
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"namespace": at.namespace, "name": at.name},
            "eventTime": micro_time(wall),
            "type": key.type,
            "reason": key.reason,
            "action": key.action,
            "note": key.note,
            "regarding": about,
            "reportingController": self._controller,
            "reportingInstance": self._instance,
        }


def shortened(note: str) -> str:
    """The note, cut to what the API server takes."""
    if len(note.encode()) <= NOTE_LIMIT:
        return note
    return note.encode()[: NOTE_LIMIT - len("…".encode())].decode(errors="ignore") + "…"


class Recorder:
    """Says events about objects; `run` writes them."""

    WAITING = 1000
    """How many events may wait to be written before the next is dropped."""

    def __init__(
        self,
        client: Client,
        *,
        controller: str,
        instance: str,
        clock: Callable[[], float],
        wall: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._clock = clock
        self._wall = wall
        self._book = EventBook(controller=controller, instance=instance)
        self._waiting: asyncio.Queue[Create | Extend] = asyncio.Queue(self.WAITING)

    @property
    def dropped(self) -> int:
        """How many events were cut short or could not be written."""
        return self._book.dropped

    def event(
        self,
        about: TypedObject | Object,
        type_: Literal["Normal", "Warning"],
        reason: str,
        note: str,
        *,
        action: str,
        once: str = "",
    ) -> None:
        """Say something about an object; comes back at once.

        What several processes see and each would tell has a name, `once`, by which the server
        knows that it was told.
        """
        note = shortened(note)
        reference = reference_to(about)
        key = EventKey(
            uid=reference["uid"],
            namespace=reference.get("namespace", ""),
            name=reference["name"],
            type=type_,
            reason=reason,
            action=action,
            note=note,
            once=once,
        )
        self._offer(self._book.record(key, reference, self._clock(), self._wall()))

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(endless("event series", self._flush_series()), name="event series")
            while True:
                await self._write(await self._waiting.get())

    async def drain(self, within: float) -> None:
        """Write what still waits, as far as there is time; called when `run` has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not self._waiting.empty():
                    await self._write(self._waiting.get_nowait())

    async def _flush_series(self) -> None:
        while True:
            await asyncio.sleep(EventBook.FLUSH / 4)
            for grown in self._book.due(self._clock()):
                self._offer(grown)

    def _offer(self, what: Create | Extend | None) -> None:
        if what is None:
            return
        try:
            self._waiting.put_nowait(what)
        except asyncio.QueueFull:
            self._book.dropped += 1

    async def _write(self, what: Create | Extend) -> None:
        try:
            if isinstance(what, Create):
                await self._client.create(EVENTS, what.event)
            else:
                name, namespace = what.key.name, what.key.namespace
                await self._client.patch(EVENTS, name, {"series": what.series}, namespace)
        except AlreadyExists:
            return  # told by another process, or by us before a restart
        except NotFound:
            # The namespace or the event is gone, and with them the reader.
            self._book.dropped += 1
        except KubeError as error:
            self._book.dropped += 1
            log.warning("event dropped", error=str(error), dropped=self._book.dropped)
