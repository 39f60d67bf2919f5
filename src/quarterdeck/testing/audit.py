"""What reached the API server, counted in its audit log and not by whoever sent it."""

import json
from pathlib import Path
from typing import NamedTuple

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


class Request(NamedTuple):
    """One request as the API server saw it."""

    user: str
    verb: str
    resource: str
    """With the subresource: `notes/status`."""
    namespace: str
    name: str
    code: int


def requests_by(audit_log: Path, user: str) -> list[Request]:
    """All finished requests of a user, oldest first."""
    found = []
    for line in audit_log.read_text().splitlines():
        if user not in line or not line.endswith("}"):
            continue
        entry = json.loads(line)
        if entry["user"]["username"] != user or entry["stage"] != "ResponseComplete":
            continue
        about = entry.get("objectRef", {})
        parts = (about.get("resource", ""), about.get("subresource", ""))
        found.append(
            Request(
                user=user,
                verb=entry["verb"],
                resource="/".join(filter(None, parts)),
                namespace=about.get("namespace", ""),
                name=about.get("name", ""),
                code=entry.get("responseStatus", {}).get("code", 0),
            )
        )
    return found


def writes_by(audit_log: Path, user: str) -> list[Request]:
    """A user's writes, those to Leases and Events left out."""
    return [
        request
        for request in requests_by(audit_log, user)
        if request.verb in _WRITES and request.resource not in ("leases", "events")
    ]
