"""`ClusterVersion.status.history`: the releases that a cluster ran, newest first.

It is also where an update in progress is remembered: the newest entry names the release that is
being applied, and Partial says that it is not done. After a crash that is all that is needed to
go on. When an update is accepted or complete is decided elsewhere.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

import msgspec

from quarterdeck.api.config_v1 import Release, UpdateHistory, UpdateState
from quarterdeck.versions import parse_version

History: TypeAlias = tuple[UpdateHistory, ...]

MAX_ENTRIES = 100
NEWEST_KEPT = 5


def started(history: History, release: Release, now: datetime, *, risks: str = "") -> History:
    """The history when the move to a release begins; unchanged if that is the newest already.

    `risks` are the warnings that were overridden to begin.
    """
    if history and is_of(history[0], release):
        return history
    now = now.replace(microsecond=0)
    entry = UpdateHistory(
        state=UpdateState.PARTIAL,
        started_time=now,
        completion_time=None,
        version=release.version,
        image=release.image,
        verified=False,
        accepted_risks=risks or None,
    )
    return pruned((entry, *_closed(history, now)))


def completed(history: History, now: datetime) -> History:
    """The history when the newest release has been applied; unchanged if it was before."""
    if not history or history[0].state == UpdateState.COMPLETED:
        return history
    # A clock that was set back must not let a release be done before it began.
    end = max(now.replace(microsecond=0), history[0].started_time)
    done = msgspec.structs.replace(
        history[0], state=UpdateState.COMPLETED.value, completion_time=end
    )
    return (done, *history[1:])


def latest_completed(history: History) -> UpdateHistory | None:
    """The newest release that was fully applied; None before the first."""
    return next((entry for entry in history if entry.state == UpdateState.COMPLETED), None)


def maybe_running(history: History) -> tuple[str, ...]:
    """The versions of which parts may run: those begun since the last one that was completed.

    Newest first, each once. One entry says it all on a settled cluster.
    """
    return tuple(dict.fromkeys(_versions_since_completed(history)))


def is_of(entry: UpdateHistory, release: Release) -> bool:
    """Whether an entry is about this release: by version where both have one, else by image."""
    if entry.version and release.version:
        return entry.version == release.version
    return entry.image == release.image


def pruned(history: Sequence[UpdateHistory]) -> History:
    """At most MAX_ENTRIES: the first, the newest five and the latest completed always stay.

    Of the others the first and the last completed one of each minor version stay longest, because
    they say what the cluster has been; then the completed ones; of the same kind the newer ones.
    """
    surplus = len(history) - MAX_ENTRIES
    if surplus <= 0:
        return tuple(history)
    last = len(history) - 1
    keep = {*range(NEWEST_KEPT), last, _latest_completed_index(history)}
    droppable = [index for index in range(last, -1, -1) if index not in keep]
    ends = _ends_of_minors(history)
    droppable.sort(key=lambda i: (i in ends, history[i].state == UpdateState.COMPLETED))
    dropped = set(droppable[:surplus])
    return tuple(entry for index, entry in enumerate(history) if index not in dropped)


def _closed(history: History, now: datetime) -> History:
    """The history whose newest entry has an end: another release takes its place."""
    if not history or history[0].completion_time is not None:
        return history
    end = max(now, history[0].started_time)
    return (msgspec.structs.replace(history[0], completion_time=end), *history[1:])


def _versions_since_completed(history: History) -> Iterator[str]:
    for entry in history:
        if entry.version:
            yield entry.version
        if entry.state == UpdateState.COMPLETED:
            return


def _ends_of_minors(history: Sequence[UpdateHistory]) -> set[int]:
    """Where the first and the last completed release of each minor version stand."""
    newest: dict[tuple[int, int], int] = {}
    oldest: dict[tuple[int, int], int] = {}
    for index, entry in enumerate(history):
        version = parse_version(entry.version or "")
        if version is not None and entry.state == UpdateState.COMPLETED:
            newest.setdefault(version.line, index)
            oldest[version.line] = index
    return {*newest.values(), *oldest.values()}


def _latest_completed_index(history: Sequence[UpdateHistory]) -> int:
    indexes = (i for i, entry in enumerate(history) if entry.state == UpdateState.COMPLETED)
    return next(indexes, 0)
