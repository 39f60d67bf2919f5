"""The requests that reached the API server, from its audit log.

A shared control plane's log grows to tens of megabytes, and tests read it again and again, so each
line is parsed only once.
"""

import os
import threading
from collections import defaultdict
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_LOGS_AT_ONCE = 16
"""The most logs whose lines are kept in memory; others are read again from their start."""


class AuditedRequest(NamedTuple):
    """One request in the audit log."""

    user: str
    verb: str
    resource: str
    """With the subresource: `notes/status`."""
    namespace: str
    name: str
    code: int
    impersonated: str = ""
    """As whom the user has made the request; empty if as itself."""
    agent: str = ""
    """What the program calls itself: its User-Agent header."""
    uri: str = ""
    """The path and the query."""
    received: str = ""
    """When the server received it, in microseconds; texts of this form sort by time."""

    @property
    def is_apply(self) -> bool:
        """Whether it is a server-side apply, which alone says whether it is forced."""
        return self.verb == "patch" and "force" in parse_qs(urlsplit(self.uri).query)


def requests_by(audit_log: Path, user: str) -> list[AuditedRequest]:
    """All finished requests of a user, oldest first."""
    return _reader(audit_log).requests_by(user)


def writes_by(audit_log: Path, user: str) -> list[AuditedRequest]:
    """A user's writes, without Leases, Events, and reviews, which store nothing."""
    return [
        request
        for request in requests_by(audit_log, user)
        if request.verb in _WRITES
        and request.resource not in ("leases", "events")
        and not request.resource.endswith("reviews")
    ]


def requests_from(audit_log: Path, agent: str) -> list[AuditedRequest]:
    """All finished requests of the programs that call themselves so, by anybody."""
    return [one for one in _reader(audit_log).requests() if one.agent == agent]


class _User(msgspec.Struct):
    username: str = ""


class _About(msgspec.Struct, rename="camel"):
    resource: str = ""
    subresource: str = ""
    api_group: str = ""
    namespace: str = ""
    name: str = ""


class _Response(msgspec.Struct):
    code: int = 0


class AuditEntry(msgspec.Struct, rename="camel"):
    """A line of an audit log; what it lacks is empty."""

    stage: str
    verb: str
    user: _User
    user_agent: str = ""
    request_uri: str = msgspec.field(name="requestURI", default="")
    request_received_timestamp: str = ""
    annotations: dict[str, str] = {}
    impersonated_user: _User = msgspec.field(default_factory=_User)
    object_ref: _About = msgspec.field(default_factory=_About)
    response_status: _Response = msgspec.field(default_factory=_Response)


decode_entry = msgspec.json.Decoder(AuditEntry).decode


class _LogReader:
    """The requests of one log, by user."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._begin(inode=0)

    def _begin(self, inode: int) -> None:
        self._inode = inode
        self._offset = 0
        self._by_user: defaultdict[str, list[AuditedRequest]] = defaultdict(list)

    def requests_by(self, user: str) -> list[AuditedRequest]:
        """All finished requests of a user so far."""
        with self._lock:
            self._read_on()
            return list(self._by_user[user])

    def requests(self) -> list[AuditedRequest]:
        """All finished requests so far, those of a user together."""
        with self._lock:
            self._read_on()
            return [one for requests in self._by_user.values() for one in requests]

    def _read_on(self) -> None:
        with self._path.open("rb") as log:
            found = os.fstat(log.fileno())
            if found.st_ino != self._inode or found.st_size < self._offset:
                self._begin(found.st_ino)  # Another control plane has a log at this path now.
            log.seek(self._offset)
            text = log.read()
        # An incomplete line is read the next time.
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            self._take(decode_entry(line))

    def _take(self, entry: AuditEntry) -> None:
        if entry.stage != "ResponseComplete":
            return
        about, user = entry.object_ref, entry.user.username
        self._by_user[user].append(
            AuditedRequest(
                user=user,
                verb=entry.verb,
                resource="/".join(filter(None, (about.resource, about.subresource))),
                namespace=about.namespace,
                name=about.name,
                code=entry.response_status.code,
                impersonated=entry.impersonated_user.username,
                agent=entry.user_agent,
                uri=entry.request_uri,
                received=entry.request_received_timestamp,
            )
        )


@lru_cache(maxsize=_LOGS_AT_ONCE)
def _reader(audit_log: Path) -> _LogReader:
    return _LogReader(audit_log)
