"""Reads the access lines of all pods of an IngressController, each once. I/O.

The lines are in the logs of the sidecars. A position in a log is a second, and how many lines since
then are known: the API server takes no finer one. With it a lost connection, or a sidecar that
starts again, loses no line and repeats none.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime
from typing import NamedTuple

from quarterdeck.api.meta import PODS, Object
from quarterdeck.kube import (
    ApiError,
    Client,
    ConnectionFailed,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Unauthorized,
)
from quarterdeck.operators.ingress.logging.access.destination.container import SIDECAR
from quarterdeck.operators.ingress.names import NAMESPACE, POD_LABEL

LOOK_PERIOD = 1.0
"""Seconds between two looks at which pods there are, and until a failed one is tried again."""
STREAM_TIMEOUT = 600.0
"""Seconds after which a followed log is opened again; a dead connection is noticed then."""
WAITING_LINES = 1000
"""The most lines that are read ahead of the one who shows them."""


class Line(NamedTuple):
    """An access line, by the time at which the node read it."""

    time: str
    pod: str
    text: str


class NoLines(Exception):  # noqa: N818 - it is no failure: there is nothing to read
    """There are no pods with access lines; the text says why, and what to do."""


async def present_lines(client: Client, name: str) -> list[Line]:
    """The lines that there are now, by time; raises `NoLines` if no pod has a sidecar."""
    found = await _present(client, await logging_pods(client, name))
    return [line for _, line in found if is_access_line(line)]


async def follow_lines(
    client: Client, name: str, note: Callable[[str], None]
) -> AsyncGenerator[Line, None]:
    """The present lines by time, then new ones as they come, also of new pods; without end.

    `note` gets a sentence when a pod comes, goes, or cannot be read.
    """
    pods = await logging_pods(client, name)
    logs = {uid_of(pod): PodLog(client, pod, note) for pod in pods}
    for uid, line in await _present(client, pods, note):
        logs[uid].seen(line.time)
        if is_access_line(line):
            yield line
    queue: asyncio.Queue[Line] = asyncio.Queue(WAITING_LINES)
    readers = {uid: asyncio.create_task(log.follow(queue, note)) for uid, log in logs.items()}
    looking = asyncio.create_task(_look(client, name, readers, queue, note))
    try:
        while True:
            taken = asyncio.create_task(queue.get())
            await asyncio.wait([taken, looking], return_when=asyncio.FIRST_COMPLETED)
            if not taken.done():
                taken.cancel()
                looking.result()  # It ends only by an error.
            if is_access_line(line := taken.result()):
                yield line
    finally:
        for task in (looking, *readers.values()):
            task.cancel()
        await asyncio.gather(looking, *readers.values(), return_exceptions=True)


async def logging_pods(client: Client, name: str) -> list[Object]:
    """The pods of an IngressController that have a sidecar; raises `NoLines` if none has."""
    pods = await _pods(client, name)
    if not pods:
        raise NoLines(
            f"the IngressController {name!r} has no pods in {NAMESPACE}; all there are: "
            "kubectl get ingresscontrollers --all-namespaces"
        )
    found = [pod for pod in pods if has_sidecar(pod)]
    if not found:
        raise NoLines(
            f"the pods of {name!r} have no container {SIDECAR!r}: its access logs do not go to "
            "a sidecar; set spec.logging.access.destination.type to Container"
        )
    return found


def has_sidecar(pod: Object) -> bool:
    """Whether access lines are in the log of this pod."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    return any(one.get("name") == SIDECAR for one in containers)


def uid_of(pod: Object) -> str:
    """The uid of a pod."""
    return str(pod["metadata"]["uid"])


class PodLog:
    """The log of one pod's sidecar, and how far it is read."""

    def __init__(
        self, client: Client, pod: Object, note: Callable[[str], None] = lambda _: None
    ) -> None:
        self._client = client
        self._note = note
        self._no_line = ""
        self._name = str(pod["metadata"]["name"])
        self._uid = uid_of(pod)
        self._restarts = _restarts(pod)
        self._second = ""
        self._known = 0

    def seen(self, time: str) -> None:
        """Note that a line of this time is read."""
        second = whole_second(time)
        if second > self._second:
            self._second, self._known = second, 0
        self._known += second == self._second

    async def read(self, *, previous: bool = False) -> AsyncGenerator[Line, None]:
        """The lines from here to the present end."""
        async for line in self._lines({"previous": "true"} if previous else {}):
            yield line

    async def follow(self, queue: "asyncio.Queue[Line]", note: Callable[[str], None]) -> None:
        """Put new lines into the queue until the pod is gone."""
        noted = ""
        while True:
            try:
                # Before the log, which may be that of a new run: its first lines are not known.
                if not await self._is_there_still(queue):
                    break
                async with aclosing(self._lines({"follow": "true"})) as lines:
                    async for line in lines:
                        self.seen(line.time)
                        noted = ""
                        await queue.put(line)
            except NotFound:
                break
            except KubeError as error:
                # A sidecar that does not run yet is no trouble, nor is a stream that ran its time.
                words = "" if isinstance(error, Invalid | ConnectionFailed) else str(error)
                if words and words != noted:
                    note(f"pod {self._name} cannot be read, trying again: {words}")
                noted = words
            # The status says a moment after the end of a log that the sidecar runs anew.
            await asyncio.sleep(LOOK_PERIOD)
        note(f"pod {self._name} is gone")

    async def _is_there_still(self, queue: "asyncio.Queue[Line]") -> bool:
        """Whether the pod exists. If its sidecar runs anew, put the rest of the old run first."""
        pod = await self._client.get(PODS, self._name, NAMESPACE)
        restarts, same = _restarts(pod), uid_of(pod) == self._uid
        if same and restarts != self._restarts:
            self._restarts = restarts
            async with aclosing(self.read(previous=True)) as lines:
                async for line in lines:
                    await queue.put(line)
            self._second, self._known = "", 0
        return same

    async def _lines(self, more: dict[str, str]) -> AsyncGenerator[Line, None]:
        query = {"container": SIDECAR, "timestamps": "true", **more}
        if self._second:
            query["sinceTime"] = self._second
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{self._name}/log"
        known = KnownLines(self._second, self._known)
        async with aclosing(self._client.text_lines(path, query, STREAM_TIMEOUT)) as stream:
            async for raw in stream:
                line = line_of(raw, self._name)
                if line is None:
                    self._say(raw)
                elif not known.has(line.time):
                    yield line

    def _say(self, raw: bytes) -> None:
        """Pass on what the node says in place of a line, once."""
        words = raw.decode(errors="replace").strip()
        if words and words != self._no_line:
            self._note(f"pod {self._name}: {words}")
        self._no_line = words


class KnownLines:
    """The first lines of a log, so many of a second, which were read before."""

    def __init__(self, second: str, number: int) -> None:
        self._second = second
        self._number = number

    def has(self, time: str) -> bool:
        """Whether the next line, of this time, was read before."""
        if not self._number or whole_second(time) != self._second:
            self._number = 0
            return False
        self._number -= 1
        return True


def line_of(raw: bytes, pod: str) -> Line | None:
    """The line with its time; None if it has none, as a message of the node itself."""
    time, blank, text = raw.decode(errors="replace").partition(" ")
    try:
        whole_second(time)
    except (ValueError, OverflowError):
        return None
    return Line(time, pod, text) if blank else None


def is_access_line(line: Line) -> bool:
    """Whether the line is about a request; rsyslog writes messages of its own there too."""
    return not line.text.startswith(("rsyslogd ", "rsyslogd:"))


def whole_second(time: str) -> str:
    """The second of a time of RFC 3339, in UTC: a node may write any zone and any precision."""
    return datetime.fromisoformat(time).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def by_time(line: Line) -> tuple[str, str]:
    """The key to order lines by: a fraction may have any number of digits."""
    _, point, rest = line.time.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))] if point else ""
    return whole_second(line.time), digits.ljust(9, "0")


async def _present(
    client: Client, pods: list[Object], note: Callable[[str], None] = lambda _: None
) -> list[tuple[str, Line]]:
    found: list[tuple[str, Line]] = []
    for pod in pods:
        try:
            async with aclosing(PodLog(client, pod, note).read()) as lines:
                found += [(uid_of(pod), line) async for line in lines]
        except (NotFound, Invalid):
            continue  # It has just gone, or its sidecar has not started.
    return sorted(found, key=lambda one: by_time(one[1]))


async def _look(
    client: Client,
    name: str,
    readers: "dict[str, asyncio.Task[None]]",
    queue: "asyncio.Queue[Line]",
    note: Callable[[str], None],
) -> None:
    """Start a reader for each new pod, for ever."""
    failed = False
    while True:
        try:
            for pod in _new_pods(await _pods(client, name), readers):
                note(f"pod {pod['metadata']['name']} has come")
                log = PodLog(client, pod, note)
                readers[uid_of(pod)] = asyncio.create_task(log.follow(queue, note))
            failed = False
        except (Unauthorized, Forbidden):
            raise
        except (ApiError, ConnectionFailed) as error:
            if not failed:
                note(f"the API server cannot be asked, trying again: {error}")
            failed = True
        await asyncio.sleep(LOOK_PERIOD)


def _new_pods(pods: list[Object], readers: "dict[str, asyncio.Task[None]]") -> Iterator[Object]:
    return (pod for pod in pods if has_sidecar(pod) and uid_of(pod) not in readers)


async def _pods(client: Client, name: str) -> list[Object]:
    return list((await client.list(PODS, NAMESPACE, label_selector=f"{POD_LABEL}={name}")).items)


def _restarts(pod: Object) -> int:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return next((int(one["restartCount"]) for one in statuses if one["name"] == SIDECAR), 0)
