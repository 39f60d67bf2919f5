"""The progress of a release in the message of ClusterVersion's Progressing condition. Pure.

The cluster version operator writes the message. The command line and the console read it, so its
form stands here once.
"""

import re
from collections.abc import Sequence

import msgspec

MAX_LISTED = 5
"""The most names that a message lists."""
_FORM = re.compile(
    r"Working towards \S+: (?P<done>\d{1,9}) of (?P<total>\d{1,9}) done \(\d{1,3}% complete\)"
    r"(?:, waiting on (?P<waiting>.+))?",
    re.DOTALL,
)
_MORE = re.compile(r" and (\d{1,9}) more$")


class ReleaseProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How many manifests of a release are done, and on what it waits."""

    done: int
    total: int
    waiting: tuple[str, ...] = ()
    """The short names of the first few objects that it waits for."""
    more: int = 0
    """How many further objects it waits for."""

    @property
    def percent(self) -> int:
        """The share that is done, rounded down."""
        return min(100, 100 * self.done // self.total) if self.total else 0


def progress_message(version: str, progress: ReleaseProgress | None) -> str:
    """The progress of a release, in one line."""
    if progress is None or not progress.total:
        return f"Working towards {version}"
    text = (
        f"Working towards {version}: {progress.done} of {progress.total} done "
        f"({progress.percent}% complete)"
    )
    waiting = listed(progress.waiting, progress.more)
    return f"{text}, waiting on {waiting}" if waiting else text


def progress_in(message: str) -> ReleaseProgress | None:
    """The progress in a message of `progress_message`; None if it has none."""
    found = _FORM.fullmatch(message)
    if found is None:
        return None
    waiting = found["waiting"] or ""
    further = _MORE.search(waiting)
    names = waiting[: further.start()] if further else waiting
    return ReleaseProgress(
        done=int(found["done"]),
        total=int(found["total"]),
        waiting=tuple(name for one in names.split(", ") if (name := one.strip())),
        more=int(further[1]) if further else 0,
    )


def listed(names: Sequence[str], more: int = 0) -> str:
    """The first few names, and how many more there are."""
    hidden = max(0, len(names) - MAX_LISTED) + more
    return ", ".join(names[:MAX_LISTED]) + (f" and {hidden} more" if hidden else "")
