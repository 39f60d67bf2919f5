"""What the fault proxy can do to a request, and what it says of the requests that came by."""

import threading

import msgspec
from yarl import URL


class Delay(msgspec.Struct, frozen=True):
    """Wait, then do as asked."""

    seconds: float


class Late(msgspec.Struct, frozen=True):
    """Do as asked, and answer after a while."""

    seconds: float


class Hold(msgspec.Struct, frozen=True):
    """Keep the request until it is let go, then do as asked."""

    held: threading.Event = msgspec.field(default_factory=threading.Event)
    """Set when all of the request is here, so that its sender may be paused."""
    let_go: threading.Event = msgspec.field(default_factory=threading.Event)


class Answer(msgspec.Struct, frozen=True):
    """Answer with a failure instead of asking the server."""

    status: int
    retry_after: int | None = None
    reason: str = ""


class StreamError(msgspec.Struct, frozen=True):
    """Open the watch, send an ERROR event, and end it."""

    status: int
    reason: str = ""


class Cut(msgspec.Struct, frozen=True):
    """Break the connection after so many bytes of the server's answer."""

    after: int = 0


class Stall(msgspec.Struct, frozen=True):
    """Fall silent after so many bytes of the server's answer, with the connection open."""

    after: int = 0


Fault = Delay | Late | Hold | Answer | StreamError | Cut | Stall


class Seen(msgspec.Struct, frozen=True):
    """A request that came by."""

    verb: str
    resource: str
    path: str
    user_agent: str
    streams: bool = False
    """A watch that is to begin with all objects."""


class Rule(msgspec.Struct):
    """A fault, and the requests that it is for."""

    fault: Fault
    verb: str | None
    resource: str | None
    times: int | None

    def takes(self, seen: Seen) -> bool:
        """Whether it is about this request; each time counts."""
        if self.times == 0:
            return False
        if self.verb not in (None, seen.verb) or self.resource not in (None, seen.resource):
            return False
        if self.times is not None:
            self.times -= 1
        return True


def describe(method: str, url: URL, user_agent: str = "") -> Seen:
    """What a request asks for, in the words of an audit log."""
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
