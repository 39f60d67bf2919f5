"""`ClusterVersion.status.history`: the releases that a cluster ran, newest first.

It also records an update in progress: the newest entry names the release that is being applied, and
its state Partial means that it is not complete. After a crash the operator needs nothing else to
continue. Other modules decide when an update is accepted or complete.
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
MAX_RISKS = 2 << 10
"""Bytes of the accepted risks of an entry: a hundred entries have to fit into the status."""


def started(
    history: History,
    release: Release,
    now: datetime,
    *,
    risks: str = "",
    image: str = "",
    verified: bool = False,
) -> History:
    """The history with the start of a move to a release; unchanged if that is the newest entry.

    `risks` are the warnings that were overridden. `image` is the requested image, if it is written
    in another way than the release's: with its tag.
    """
    if history and is_of(history[0], release):
        return history
    now = now.replace(microsecond=0)
    entry = UpdateHistory(
        state=UpdateState.PARTIAL,
        started_time=now,
        completion_time=None,
        version=release.version,
        image=image or release.image,
        verified=verified,
        accepted_risks=_cut(risks) or None,
    )
    return pruned((entry, *_closed(history, now)))


def _cut(risks: str) -> str:
    data = risks.encode()
    if len(data) <= MAX_RISKS:
        return risks
    return data[: MAX_RISKS - 3].decode(errors="ignore") + "…"


def completed(history: History, now: datetime) -> History:
    """The history with the newest release completed; unchanged if it is completed already."""
    if not history or history[0].state == UpdateState.COMPLETED:
        return history
    # A clock that was set back must not date the completion before the start.
    end = max(now.replace(microsecond=0), history[0].started_time)
    done = msgspec.structs.replace(
        history[0], state=UpdateState.COMPLETED.value, completion_time=end
    )
    return (done, *history[1:])


def latest_completed(history: History) -> UpdateHistory | None:
    """The newest completed release; None if there is none."""
    return next((entry for entry in history if entry.state == UpdateState.COMPLETED), None)


def maybe_running(history: History) -> tuple[str, ...]:
    """The versions of which parts may run: the last completed one and those started since.

    Newest first, each once. A settled cluster has one.
    """
    return tuple(dict.fromkeys(_versions_since_completed(history)))


def is_of(entry: UpdateHistory, release: Release) -> bool:
    """Whether an entry is about this release: by version if both have one, else by image."""
    if entry.version and release.version:
        return entry.version == release.version
    return entry.image == release.image


def pruned(history: Sequence[UpdateHistory]) -> History:
    """At most MAX_ENTRIES entries: the first, the newest five and the latest completed always stay.

    Of the others, the first and the last completed entry of each minor version stay longest, then
    the other completed entries. Among equals, newer entries stay longer.
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
    """The history with a completion time in its newest entry, which another release replaces."""
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
    """The indexes of the first and the last completed release of each minor version."""
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
