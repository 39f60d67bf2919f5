"""The faults of the fault proxy, and its record of a request."""

import threading

import msgspec
from yarl import URL


class Delay(msgspec.Struct, frozen=True):
    """Wait, then forward the request."""

    seconds: float


class Late(msgspec.Struct, frozen=True):
    """Forward the request, and delay the answer."""

    seconds: float


class Hold(msgspec.Struct, frozen=True):
    """Hold the request until `let_go` is set, then forward it."""

    held: threading.Event = msgspec.field(default_factory=threading.Event)
    """Set when the whole request is received, so that its sender may be paused."""
    let_go: threading.Event = msgspec.field(default_factory=threading.Event)


class Answer(msgspec.Struct, frozen=True):
    """Answer with an error instead of forwarding the request."""

    status: int
    retry_after: int | None = None
    reason: str = ""


class StreamError(msgspec.Struct, frozen=True):
    """Answer a watch with one ERROR event, and end it."""

    status: int
    reason: str = ""


class Cut(msgspec.Struct, frozen=True):
    """Break the connection after this many bytes of the answer."""

    after: int = 0


class Stall(msgspec.Struct, frozen=True):
    """Send nothing more after this many bytes of the answer, with the connection open."""

    after: int = 0


Fault = Delay | Late | Hold | Answer | StreamError | Cut | Stall


class Seen(msgspec.Struct, frozen=True):
    """A request that the proxy received."""

    verb: str
    resource: str
    path: str
    user_agent: str
    streams: bool = False
    """Whether it is a watch with initial events."""


class FaultRule(msgspec.Struct):
    """A fault, and the requests that it applies to."""

    fault: Fault
    verb: str | None
    resource: str | None
    times: int | None
    skip: int = 0
    """How many requests pass before it applies."""

    def consume(self, seen: Seen) -> bool:
        """Use the fault once if it applies to this request; True if it does."""
        if self.times == 0:
            return False
        if self.verb not in (None, seen.verb) or self.resource not in (None, seen.resource):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


def describe(method: str, url: URL, user_agent: str = "") -> Seen:
    """The request in terms of an audit log."""
    parts = [part for part in url.path.split("/") if part]
    # /api/v1/... or /apis/GROUP/VERSION/..., then maybe namespaces/NAME, then resource/name/sub
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:] if parts[:1] == ["apis"] else []
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    resource = "/".join([*rest[:1], *rest[2:3]])
    named = len(rest) > 1
    match method:
        case "GET" if url.query.get("watch") in ("true", "1"):
            verb = "watch"
        case "GET":
            verb = "get" if named or not rest else "list"
        case "DELETE":
            verb = "delete" if named else "deletecollection"
        case _:
            verb = {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, method.lower())
    streams = verb == "watch" and url.query.get("sendInitialEvents") == "true"
    return Seen(verb, resource, url.path, user_agent, streams)
