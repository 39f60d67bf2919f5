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


class _User(msgspec.Struct):
    username: str = ""


class _About(msgspec.Struct):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Response(msgspec.Struct):
    code: int = 0


class _Entry(msgspec.Struct, rename="camel"):
    stage: str
    verb: str
    user: _User
    impersonated_user: _User = msgspec.field(default_factory=_User)
    object_ref: _About = msgspec.field(default_factory=_About)
    response_status: _Response = msgspec.field(default_factory=_Response)


_DECODER = msgspec.json.Decoder(_Entry)


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
            self._take(_DECODER.decode(line))

    def _take(self, entry: _Entry) -> None:
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
            )
        )


@lru_cache(maxsize=_LOGS_AT_ONCE)
def _reader(audit_log: Path) -> _LogReader:
    return _LogReader(audit_log)
