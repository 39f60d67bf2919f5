"""The log of some pods, live: followed once for all viewers of an account."""

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
from markupsafe import Markup, escape

from quarterdeck.api.meta import PODS, Object
from quarterdeck.console.account import ConsoleAccount
from quarterdeck.console.rights import Action
from quarterdeck.console.viewers import end_updates
from quarterdeck.controller.tasks import guarded
from quarterdeck.kube import KubeError, Unauthorized
from quarterdeck.log import NORMAL, get_logger
from quarterdeck.terminal import visible

log = get_logger("console.log_tail")

LOOK_PERIOD = 3.0
"""Seconds between two looks for new pods."""
STREAM_TIMEOUT = 3600.0
TAIL = 60
"""How many earlier lines of each pod are read."""
KEPT = 200
MAX_LINE = 4000
MAX_QUEUED = 256
_TEXT = re.compile(r"\S+ \[(?P<level>\w+) *\] (?P<rest>.*)$")
# Possessive, and only where blanks begin: a line of nothing but blanks must not take long.
_BEFORE_FIELDS = re.compile(r"(?<!\s)\s++(?=[a-z_]++=)")
_VERBOSITY = re.compile(r"\bv=(\d{1,2})\b")
_KNOWN = ("time", "level", "event", "logger", "timestamp", "msg")


class PodLogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a log, taken apart."""

    pod: str
    stamp: str
    """The time at which the node got it, for the order of lines."""
    level: str = "info"
    time: str = ""
    event: str = ""
    fields: str = ""


def parse_line(text: str, pod: str) -> PodLogLine | None:
    """The line of a pod's log, which begins with the node's time stamp; None without one. Pure."""
    stamp, _, rest = text.partition(" ")
    if not rest or len(stamp) < 20 or "T" not in stamp:
        return None
    rest = rest[:MAX_LINE]
    try:
        data = msgspec.json.decode(rest, type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _text_line(rest, pod, stamp)
    fields = {name: value for name, value in data.items() if name not in _KNOWN}
    return PodLogLine(
        pod=pod,
        stamp=stamp,
        level=str(data.get("level") or "info").lower(),
        time=stamp[11:23],
        event=str(data.get("event") or data.get("msg") or ""),
        fields=shown_fields(fields),
    )


def _text_line(text: str, pod: str, stamp: str) -> PodLogLine:
    """A line as our programs write it for people; any other line is an event of its own."""
    found = _TEXT.match(text)
    if found is None:
        return PodLogLine(pod=pod, stamp=stamp, time=stamp[11:23], event=text)
    event, *rest = _BEFORE_FIELDS.split(found["rest"].rstrip(), 1)
    fields = rest[0] if rest else ""
    verbosity = _VERBOSITY.search(fields)
    level = "debug" if verbosity and int(verbosity[1]) > NORMAL else found["level"]
    return PodLogLine(
        pod=pod,
        stamp=stamp,
        level=level,
        time=stamp[11:23],
        event=event,
        fields=fields,
    )


def shown_fields(fields: Mapping[str, Any]) -> str:
    """Fields as `name=value`, in one line."""
    return " ".join(
        f"{name}={value if isinstance(value, str) else msgspec.json.encode(value).decode()}"
        for name, value in fields.items()
    ).replace("\n", "⏎")


def line_html(line: PodLogLine) -> Markup:
    """The element for a line; everything in it is escaped."""
    level = line.level if line.level in ("debug", "warning", "error") else "info"
    return Markup(
        '<span class="{}" title="{}"><span class="t">{}</span> <span class="e">{}</span> '
        '<span class="k">{}</span></span>'
    ).format(level, line.pod, line.time, visible(line.event), visible(line.fields))


class LogTail:
    """The last lines of the pods with a label, and each new one."""

    def __init__(
        self, account: ConsoleAccount, namespace: str, selector: str, container: str
    ) -> None:
        self._account = account
        self._namespace = namespace
        self._selector = selector
        self._container = container
        self.reading = Action(verb="get", resource=PODS, namespace=namespace, subresource="log")
        """What one has to be allowed to do to see it."""
        self.lines: deque[PodLogLine] = deque(maxlen=KEPT)
        self._viewers: set[asyncio.Queue[bytes | None]] = set()
        self._task: asyncio.Task[None] | None = None

    async def last_lines(self) -> list[PodLogLine]:
        """The last lines of all pods, by time; without following them."""
        found: list[PodLogLine] = []
        for pod in await self._pods():
            path = self._path(pod)
            query = f"container={self._container}&timestamps=true&tailLines={TAIL}"
            query += f"&limitBytes={TAIL * MAX_LINE}"  # a line may have any length
            with contextlib.suppress(KubeError):
                text = (await self._account.client.raw(f"{path}?{query}")).decode(errors="replace")
                found += filter(None, (parse_line(one, pod) for one in text.splitlines()))
        return sorted(found, key=lambda line: line.stamp)[-TAIL:]

    @contextlib.asynccontextmanager
    async def viewing(self) -> AsyncIterator["asyncio.Queue[bytes | None]"]:
        """The lines for one viewer, as events; the last ones come first."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_QUEUED)
        queue.put_nowait(b"event: restart\ndata: {}\n\n")
        if self._task is None or self._task.done():
            self.lines.clear()  # they are read again
        if self.lines:
            queue.put_nowait(message(self.lines))
        self._viewers.add(queue)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="console log")
        try:
            yield queue
        finally:
            self._viewers.discard(queue)
            if not self._viewers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _run(self) -> None:
        """Follow the pods until nobody looks; if that fails, all viewers' lines end."""
        followed: dict[str, asyncio.Task[None]] = {}
        try:
            await guarded("log", self._follow_all(followed))
        except Exception:
            log.exception("log not followed")
        finally:
            for task in followed.values():
                task.cancel()
            if asyncio.current_task() is self._task:
                for queue in self._viewers:
                    end_updates(queue)

    async def _follow_all(self, followed: dict[str, asyncio.Task[None]]) -> None:
        # The API server does not end a log that it sends when the right is revoked.
        while await self._may_read():
            with contextlib.suppress(KubeError):
                for pod in await self._pods():
                    if pod not in followed or followed[pod].done():
                        again = pod in followed
                        followed[pod] = asyncio.create_task(
                            self._follow(pod, again=again), name=f"console log of {pod}"
                        )
            await asyncio.sleep(LOOK_PERIOD)

    async def _may_read(self) -> bool:
        """Whether the log may be read; an outage does not change that."""
        try:
            return (await self._account.may(self.reading)).allowed
        except Unauthorized:
            return False
        except KubeError:
            return True

    async def _follow(self, pod: str, *, again: bool) -> None:
        query = {"container": self._container, "timestamps": "true", "follow": "true"}
        query |= {"sinceSeconds": "3"} if again else {"tailLines": str(TAIL)}
        latest = max((one.stamp for one in self.lines if one.pod == pod), default="")
        try:
            stream = self._account.client.text_lines(self._path(pod), query, STREAM_TIMEOUT)
            async with contextlib.aclosing(stream):
                async for text in stream:
                    line = parse_line(text.decode(errors="replace"), pod)
                    if line is not None and line.stamp > latest:
                        self._send([line])
        except KubeError as error:
            log.v(4).info("log not followed", pod=pod, error=str(error))

    def _send(self, lines: list[PodLogLine]) -> None:
        if not lines:
            return
        self.lines.extend(lines)
        data = message(lines)
        for queue in self._viewers:
            if not queue.full():
                queue.put_nowait(data)

    async def _pods(self) -> list[str]:
        found = await self._account.client.list(
            PODS, self._namespace, label_selector=self._selector
        )
        return [one["metadata"]["name"] for one in found.items if _runs(one)]

    def _path(self, pod: str) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods/{pod}/log"


def _runs(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Running", "Succeeded", "Failed")


def message(lines: "deque[PodLogLine] | list[PodLogLine]") -> bytes:
    """The lines as one server-sent event."""
    text = "".join(line_html(one) for one in lines)
    return f"event: lines\ndata: {msgspec.json.encode(text).decode()}\n\n".encode()


def shown(lines: list[PodLogLine]) -> Markup:
    """The elements for lines, for a page without JavaScript."""
    return Markup("").join(line_html(one) for one in lines) if lines else escape("")
