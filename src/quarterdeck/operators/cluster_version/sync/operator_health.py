"""Whether a ClusterOperator reports what a release expects. Pure.

The questions, in order:

1. Does the manifest list versions? If not, the payload is at fault.
2. Is the operator Available? If not, the step fails. An operator that is stale, or whose Available
   carries the verdict of the staleness checker, is not available.
3. Is it Degraded, or is Degraded unknown? The step waits, and fails after `OPERATOR_TIMEOUT`. While
   initializing it is only a note: operators of a new cluster are degraded until all run.
4. Does it report the expected versions? If not, the step waits.

Progressing is ignored. An operator that has not reported yet, or is not available yet while
initializing, is waited for until `OPERATOR_TIMEOUT`.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from quarterdeck.api.meta import Object
from quarterdeck.api.times import parse_time
from quarterdeck.operators.cluster_version.sync.progress import (
    DONE,
    Done,
    Failed,
    Outcome,
    Waiting,
)
from quarterdeck.payload.graph import Mode
from quarterdeck.status.staleness import lacks_report, plain_conditions
from quarterdeck.status.staleness_marks import original

OPERATOR_TIMEOUT = timedelta(minutes=10)
"""How long an operator may be degraded, or not report after its ClusterOperator was created."""


def operator_health(
    live: Object,
    expected: Mapping[str, str],
    mode: Mode,
    now: datetime,
    since: datetime | None = None,
) -> Outcome:
    """The outcome for a ClusterOperator; `now` is the server's time.

    `since` is when the run first waited for it: its object is created long before its Deployment.
    """
    if not expected:
        message = "its manifest has no status.versions; list what the operator reports there"
        return Failed("ClusterOperatorNoVersions", message)
    status = live.get("status") or {}
    conditions = {str(c.get("type")): c for c in status.get("conditions") or ()}
    said = plain_conditions(conditions.values())
    if lacks_report(said, "Available"):
        message = "it no longer reports; see whether its pods run, and their logs"
        return Failed("ClusterOperatorStale", message)
    return (
        _availability(live, conditions, mode, now, since)
        or _degradation(live, conditions.get("Degraded"), mode, now, since, expected)
        or _versions(expected, status)
        or DONE
    )


def _availability(
    live: Object,
    conditions: Mapping[str, Object],
    mode: Mode,
    now: datetime,
    asked: datetime | None,
) -> Outcome | None:
    available = conditions.get("Available")
    if available is not None and available.get("status") == "True":
        return None
    said = _said(available) if available else "it has not reported yet"
    message = f"it is not available: {said}"
    since = _silent_since(live, asked)
    young = since is None or now - since < OPERATOR_TIMEOUT
    if young and (available is None or mode is Mode.INITIALIZING):
        return Waiting("ClusterOperatorNotAvailable", message)
    return Failed("ClusterOperatorNotAvailable", message)


def _degradation(
    live: Object,
    degraded: Object | None,
    mode: Mode,
    now: datetime,
    asked: datetime | None,
    expected: Mapping[str, str],
) -> Outcome | None:
    status = live.get("status") or {}
    if degraded is not None and degraded.get("status") == "False":
        return None
    message = f"it is degraded: {_said(degraded) if degraded else 'it does not say'}"
    if mode is Mode.INITIALIZING:
        return _versions(expected, status) or Done("ClusterOperatorDegraded", message)
    # An operator that never reported Degraded gets the same time.
    since = (
        parse_time(degraded.get("lastTransitionTime")) if degraded else _silent_since(live, asked)
    )
    if since is not None and now - since >= OPERATOR_TIMEOUT:
        return Failed("ClusterOperatorDegraded", message)
    return Waiting("ClusterOperatorDegraded", message)


def _silent_since(live: Object, asked: datetime | None) -> datetime | None:
    """Since when the operator could report: its object existed, and the run waited for it."""
    created = parse_time(live["metadata"].get("creationTimestamp"))
    return max(created, asked) if created and asked else created


def _versions(expected: Mapping[str, str], status: Object) -> Outcome | None:
    has = {str(v.get("name")): str(v.get("version")) for v in status.get("versions") or ()}
    behind = [
        f"{name} is at {has.get(name) or 'no version'}, not {version}"
        for name, version in expected.items()
        if has.get(name) != version
    ]
    return Waiting("ClusterOperatorUpdating", ", ".join(behind)) if behind else None


def _said(condition: Object) -> str:
    status, reason, message = (
        str(condition.get(field) or "") for field in ("status", "reason", "message")
    )
    message = original(message)
    head = f"{status} ({reason})" if reason else status
    return f"{head}: {message}" if message else head
