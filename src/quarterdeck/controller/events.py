"""Records events about objects, in `events.k8s.io`, without delaying a reconcile.

A repeated event about the same object becomes a series: the first is written at once, repetitions
are counted and written at most once a minute. The rate of events is limited for each object and for
the whole process. Events are help for people, not state: one that cannot be written is dropped and
counted, never retried.
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
"""The most bytes of a note that the API server accepts."""


class EventKey(msgspec.Struct, frozen=True):
    """What identifies an event: two with the same key are one series."""

    uid: str
    namespace: str
    name: str
    type: str
    reason: str
    action: str
    note: str
    once: str = ""
    """A name for what happened, if several processes may see it: only the first event counts."""


class _Series:
    """One event on the server, and its count since it was last written."""

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
    """Write the count of an event."""

    key: Key
    series: Object


class EventCorrelator:
    """Decides which events are written, and when. Pure: both clocks are passed in."""

    SERIES_INTERVAL = 60.0
    """Seconds between two writes of one series."""
    SERIES_LIFETIME = 360.0
    """Seconds without a write after which a repetition is a new event."""
    MAX_SERIES = 4096
    """The most series that are kept."""

    def __init__(self, *, controller: str, instance: str) -> None:
        self._controller = controller
        self._instance = instance[:128]
        self._known: OrderedDict[EventKey, _Series] = OrderedDict()
        self._per_object: OrderedDict[tuple[str, str, str], TokenBucket] = OrderedDict()
        self._overall = TokenBucket(rate=10, burst=200)
        self._number = 0
        self.dropped = 0

    def record(self, key: EventKey, about: Object, now: float, wall: datetime) -> Create | None:
        """The event to write now; None if it is only counted, or over the limit."""
        series = self._known.get(key)
        if series is not None and now - series.written_at < self.SERIES_LIFETIME:
            series.count += 1
            series.last = wall
            return None
        if not self._within_limits(key, now):
            self.dropped += 1
            return None
        self._number += 1
        # An event is in its object's namespace; that of a cluster-scoped object in `default`.
        namespace = key.namespace or "default"
        name = f"{key.name[:200]}.{int(wall.timestamp() * 1e6):x}{self._number:x}"
        if key.once:
            what = "/".join((key.uid, key.type, key.reason, key.once))
            name = f"{key.name[:200]}.{hashlib.sha256(what.encode()).hexdigest()[:16]}"
        self._known[key] = _Series(namespace, name, now)
        self._known.move_to_end(key)
        while len(self._known) > self.MAX_SERIES:
            self._known.popitem(last=False)
        return Create(self._event(key, about, Key(namespace, name), wall))

    def due(self, now: float) -> list[Extend]:
        """Take the series whose count has to be written; forget those that have ended."""
        grown: list[Extend] = []
        for key, series in list(self._known.items()):
            if now - series.written_at < self.SERIES_INTERVAL:
                continue
            if series.count > series.written_count and series.last is not None:
                series.written_at, series.written_count = now, series.count
                counted = {"count": series.count, "lastObservedTime": micro_time(series.last)}
                grown.append(Extend(Key(series.namespace, series.name), counted))
            elif now - series.written_at >= self.SERIES_LIFETIME:
                del self._known[key]
        for who, bucket in list(self._per_object.items()):
            if bucket.is_full(now):
                del self._per_object[who]
        return grown

    def _within_limits(self, key: EventKey, now: float) -> bool:
        who = (key.uid, key.namespace, key.name)
        bucket = self._per_object.setdefault(who, TokenBucket(rate=1 / 60, burst=25))
        self._per_object.move_to_end(who)
        while len(self._per_object) > self.MAX_SERIES:
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
    """The note, cut to what the API server accepts."""
    if len(note.encode()) <= NOTE_LIMIT:
        return note
    return note.encode()[: NOTE_LIMIT - len("…".encode())].decode(errors="ignore") + "…"


class Recorder:
    """Records events about objects; `run` writes them."""

    MAX_PENDING = 1000
    """How many events may wait to be written before the next is dropped."""

    def __init__(
        self,
        client: Client,
        *,
        controller: str,
        instance: str,
        clock: Callable[[], float],
    ) -> None:
        """Write through this client; an event's time is the server's, as that of its object."""
        self._client = client
        self._clock = clock
        self._correlator = EventCorrelator(controller=controller, instance=instance)
        self._waiting: asyncio.Queue[Create | Extend] = asyncio.Queue(self.MAX_PENDING)

    @property
    def dropped(self) -> int:
        """How many events were over the limit or could not be written."""
        return self._correlator.dropped

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
        """Record an event about an object; return at once.

        `once` names what happened, if several processes may record it: the name of the event
        follows from it, so the server accepts only the first.
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
        self._offer(self._correlator.record(key, reference, self._clock(), self._client.now()))

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(endless("event series", self._flush_series()), name="event series")
            while True:
                await self._write(await self._waiting.get())

    async def drain(self, within: float) -> None:
        """Write the pending events, for at most this long; called when `run` has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not self._waiting.empty():
                    await self._write(self._waiting.get_nowait())

    async def _flush_series(self) -> None:
        while True:
            await asyncio.sleep(EventCorrelator.SERIES_INTERVAL / 4)
            for grown in self._correlator.due(self._clock()):
                self._offer(grown)

    def _offer(self, what: Create | Extend | None) -> None:
        if what is None:
            return
        try:
            self._waiting.put_nowait(what)
        except asyncio.QueueFull:
            self._correlator.dropped += 1

    async def _write(self, what: Create | Extend) -> None:
        try:
            if isinstance(what, Create):
                await self._client.create(EVENTS, what.event)
            else:
                name, namespace = what.key.name, what.key.namespace
                await self._client.patch(EVENTS, name, {"series": what.series}, namespace)
        except AlreadyExists:
            return  # written by another process, or by us before a restart
        except NotFound:
            # The namespace or the event was deleted.
            self._correlator.dropped += 1
        except KubeError as error:
            self._correlator.dropped += 1
            log.warning("event dropped", error=str(error), dropped=self._correlator.dropped)
