"""The settings that checkers publish in one ConfigMap, and how to read them. Pure.

Each checker has its own key there, with its settings and the time. So an explanation uses the
settings of the checkers that run, not those in the manifests of their pods. No checker reads the
ConfigMap, because anybody with the right to write it could put anything there. An entry that a
checker did not write is shown with the reason, and does not count.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.times import show_duration
from quarterdeck.operators.staleness.settings import Settings
from quarterdeck.status.writers import CHECKER, CHECKER_SETTINGS

NAMESPACE, NAME = CHECKER_SETTINGS
CONFIG_MAP = f"ConfigMap {NAMESPACE}/{NAME}"
ENTRY_LIFETIME = timedelta(minutes=3)
"""How long an entry counts; checkers renew theirs each minute."""
ENTRY_KEPT_FOR = timedelta(hours=1)
"""How long an entry is kept that no checker renews."""
MAX_CHECKERS_SHOWN = 20
"""The most checkers that an explanation lists; there is one for each API server."""
TROUBLE_LIMIT = 300
"""The most characters of a checker's trouble that are published."""
_LONGEST_INTERVAL = 366 * 86400
_NOT_IN_A_KEY = re.compile(r"[^-._a-zA-Z0-9]")


class Published(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one checker publishes."""

    interval_seconds: Annotated[int, msgspec.Meta(ge=1, le=_LONGEST_INTERVAL)]
    keep_upgradeable_false: bool
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    """When it was published, by the API server's clock."""
    trouble: str = ""
    """Why the checker cannot do its work, in one line; empty if it can."""


class CheckerView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One checker's entry, and whether it counts."""

    name: str
    published: Published | None
    counts: bool
    remark: str = ""
    """Why the entry does not count, or why the checker cannot do its work."""


class AssumedSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that an explanation assumes, and where they come from."""

    interval: timedelta
    keep_upgradeable_false: bool
    source: str
    known: bool = False
    """Whether a running checker has published them."""
    checkers: tuple[CheckerView, ...] = ()


def key_for(host: str, process: int) -> str:
    """The key of a checker: its host and process; in a container the process is always the same."""
    return _NOT_IN_A_KEY.sub("_", f"{host[:200]}-{process}")


def entry(settings: Settings, at: datetime, trouble: str) -> str:
    """The text that a checker publishes under its key."""
    published = Published(
        interval_seconds=int(settings.interval.total_seconds()),
        keep_upgradeable_false=settings.keep_upgradeable_false,
        at=at.replace(microsecond=0),
        trouble=trouble[:TROUBLE_LIMIT],
    )
    return msgspec.json.encode(published).decode()


def outdated(config_map: Object, now: datetime, own: str) -> list[str]:
    """The keys that no checker renews any more; deleting them keeps the ConfigMap small."""
    found = []
    for key, value in _data(config_map).items():
        published = _decoded(value)
        if key != own and (published is None or abs(now - published.at) > ENTRY_KEPT_FOR):
            found.append(key)
    return found


def checkers_in(config_map: Object, now: datetime) -> list[CheckerView]:
    """The checkers in the ConfigMap: those that count first, the latest entry first."""
    owned = _written_by_checkers(config_map)
    views = [_view(key, value, key in owned, now) for key, value in _data(config_map).items()]
    return sorted(views, key=lambda one: (not one.counts, _age(one, now), one.name))


def assumed_settings(
    checkers: Sequence[CheckerView], now: datetime, unread: str = ""
) -> AssumedSettings:
    """The settings that the checkers use; `unread` is why the ConfigMap could not be read.

    If checkers differ, the result is that of the one that acts first: the shortest interval, and an
    Upgradeable=False stays unmarked only if all checkers leave it.
    """
    shown = tuple(checkers[:MAX_CHECKERS_SHOWN])
    counting = [(one.name, one.published) for one in checkers if one.counts and one.published]
    if not counting:
        return _without_checker(checkers, shown, now, unread)
    intervals = {one.interval_seconds for _, one in counting}
    keeps = {one.keep_upgradeable_false for _, one in counting}
    who = _listed([name for name, _ in counting])
    if len(intervals) == len(keeps) == 1:
        source = f"published by {who}, {_ago(counting[0][1].at, now)}"
    else:
        source = f"the checkers differ, so the one that acts first counts: {who}"
    return AssumedSettings(
        interval=timedelta(seconds=min(intervals)),
        keep_upgradeable_false=keeps == {True},
        source=source,
        known=True,
        checkers=shown,
    )


def _without_checker(
    checkers: Sequence[CheckerView], shown: tuple[CheckerView, ...], now: datetime, unread: str
) -> AssumedSettings:
    """The settings of the last checker if none runs now, else the defaults."""
    last = next((one for one in checkers if one.remark == TOO_OLD), None)
    if last is None or last.published is None:
        why = unread or f"no checker has published its settings in {CONFIG_MAP}"
        return AssumedSettings(
            interval=Settings().interval,
            keep_upgradeable_false=Settings().keep_upgradeable_false,
            source=f"the default; {why}",
            checkers=shown,
        )
    return AssumedSettings(
        interval=timedelta(seconds=last.published.interval_seconds),
        keep_upgradeable_false=last.published.keep_upgradeable_false,
        source=f"of checker {last.name}, which said so {_ago(last.published.at, now)} and may be "
        "gone",
        checkers=shown,
    )


def _view(key: str, value: Any, owned: bool, now: datetime) -> CheckerView:
    published = _decoded(value)
    if published is None:
        return CheckerView(name=key, published=None, counts=False, remark="not what a checker says")
    remark = ""
    if not owned:
        remark = FORGED
    elif published.at - now > ENTRY_LIFETIME:
        remark = "its time lies in the future"
    elif now - published.at > ENTRY_LIFETIME:
        remark = TOO_OLD
    return CheckerView(
        name=key, published=published, counts=not remark, remark=remark or published.trouble
    )


FORGED = "not written by a checker"
TOO_OLD = "too old: it may be gone"


def _decoded(value: Any) -> Published | None:
    """The entry with its time in UTC; None if no checker can have written it."""
    try:
        published = msgspec.json.decode(value, type=Published)
        return msgspec.structs.replace(published, at=published.at.astimezone(UTC))
    except (msgspec.DecodeError, TypeError, RecursionError, OverflowError):
        return None


def _data(config_map: Object) -> dict[str, Any]:
    data = config_map.get("data")
    return data if isinstance(data, dict) else {}


def _written_by_checkers(config_map: Object) -> set[str]:
    """The keys that only the checkers' field manager owns."""
    ours: set[str] = set()
    others: set[str] = set()
    for one in config_map["metadata"].get("managedFields") or ():
        keys = set(_keys(one))
        if one.get("manager") == CHECKER:
            ours |= keys
        else:
            others |= keys
    return ours - others


def _keys(managed: Object) -> Iterator[str]:
    data = (managed.get("fieldsV1") or {}).get("f:data")
    for field in data if isinstance(data, dict) else ():
        yield field.removeprefix("f:")


def _age(view: CheckerView, now: datetime) -> timedelta:
    return abs(now - view.published.at) if view.published else timedelta.max


def _ago(at: datetime, now: datetime) -> str:
    return f"{show_duration((now - at).total_seconds())} ago"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"checker{'s' if len(names) > 1 else ''} {shown}{more}"
