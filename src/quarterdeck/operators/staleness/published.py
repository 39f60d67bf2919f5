"""What the checkers say about themselves, in one ConfigMap that all of them share. Pure.

Each has a key of its own there, with its settings and the time. So whoever explains a decision
takes the settings from the checkers that run, and not from the pods that were meant to run them.
No checker decides by it: whoever may write that ConfigMap can put anything there. What is not as
a checker writes it is shown with the reason, and does not count.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.times import show_duration
from quarterdeck.operators.staleness.settings import Settings
from quarterdeck.status.writers import CHECKER

NAMESPACE, NAME = "kube-system", "quarterdeck-staleness"
WHERE = f"ConfigMap {NAMESPACE}/{NAME}"
FRESH = timedelta(minutes=3)
"""How old a checker's word may be to count; it is renewed each minute."""
KEPT = timedelta(hours=1)
"""How long the word of a checker that is gone is kept."""
SHOWN = 20
"""How many checkers are told apart; there is one for each API server."""
TROUBLE_LIMIT = 300
"""How many characters are published of what is in a checker's way."""
_LONGEST = 366 * 86400
_NO_KEY = re.compile(r"[^-._a-zA-Z0-9]")


class Published(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What one checker publishes."""

    interval_seconds: Annotated[int, msgspec.Meta(ge=1, le=_LONGEST)]
    keep_upgradeable_false: bool
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    """When, by the API server's clock."""
    trouble: str = ""
    """What keeps it from its work, in one line; empty when nothing does."""


class CheckerView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known of one checker."""

    name: str
    published: Published | None
    counts: bool
    remark: str = ""
    """Why it does not count, or what keeps it from its work."""


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that an explanation assumes, and where they come from."""

    interval: timedelta
    keep_upgradeable_false: bool
    source: str
    known: bool = False
    """Whether a checker that runs has said so."""
    checkers: tuple[CheckerView, ...] = ()


def key_for(host: str, process: int) -> str:
    """The key of a checker: where it runs; in a container the number is always the same."""
    return _NO_KEY.sub("_", f"{host[:200]}-{process}")


def entry(settings: Settings, at: datetime, trouble: str) -> str:
    """What a checker puts under its key."""
    published = Published(
        interval_seconds=int(settings.interval.total_seconds()),
        keep_upgradeable_false=settings.keep_upgradeable_false,
        at=at.replace(microsecond=0),
        trouble=trouble[:TROUBLE_LIMIT],
    )
    return msgspec.json.encode(published).decode()


def outdated(config_map: Object, now: datetime, own: str) -> list[str]:
    """The keys that no checker keeps up any more, so that the ConfigMap does not fill up."""
    found = []
    for key, value in _data(config_map).items():
        published = _decoded(value)
        if key != own and (published is None or abs(now - published.at) > KEPT):
            found.append(key)
    return found


def checkers_in(config_map: Object, now: datetime) -> list[CheckerView]:
    """Who says what there, those first that count, the latest of them first."""
    owned = _written_by_checkers(config_map)
    views = [_view(key, value, key in owned, now) for key, value in _data(config_map).items()]
    return sorted(views, key=lambda one: (not one.counts, _age(one, now), one.name))


def patience_of(checkers: Sequence[CheckerView], now: datetime, unread: str = "") -> Patience:
    """The settings by which the operators are judged; `unread` says why nobody could be asked.

    Where checkers differ, the one that acts first counts: the shortest interval, and an
    Upgradeable=False is kept only if all keep it.
    """
    shown = tuple(checkers[:SHOWN])
    words = [(one.name, one.published) for one in checkers if one.counts and one.published]
    if not words:
        return _assumed(shown, now, unread)
    intervals = {one.interval_seconds for _, one in words}
    keeps = {one.keep_upgradeable_false for _, one in words}
    who = _listed([name for name, _ in words])
    if len(intervals) == len(keeps) == 1:
        source = f"published by {who}, {_ago(words[0][1].at, now)}"
    else:
        source = f"the checkers differ, so the one that acts first counts: {who}"
    return Patience(
        interval=timedelta(seconds=min(intervals)),
        keep_upgradeable_false=keeps == {True},
        source=source,
        known=True,
        checkers=shown,
    )


def _assumed(shown: tuple[CheckerView, ...], now: datetime, unread: str) -> Patience:
    """Without a checker that runs: what the last one had, else the defaults."""
    last = next((one for one in shown if one.published and not _forged(one)), None)
    if last is None or last.published is None:
        why = unread or f"no checker has published its settings in {WHERE}"
        return Patience(
            interval=Settings().interval,
            keep_upgradeable_false=Settings().keep_upgradeable_false,
            source=f"the default; {why}",
            checkers=shown,
        )
    return Patience(
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
    elif published.at - now > FRESH:
        remark = "its time lies in the future"
    elif now - published.at > FRESH:
        remark = "too old: it may be gone"
    return CheckerView(
        name=key, published=published, counts=not remark, remark=remark or published.trouble
    )


FORGED = "not written by a checker"


def _forged(view: CheckerView) -> bool:
    return view.remark == FORGED


def _decoded(value: Any) -> Published | None:
    try:
        return msgspec.json.decode(value, type=Published)
    except (msgspec.DecodeError, TypeError, RecursionError):
        return None


def _data(config_map: Object) -> dict[str, Any]:
    data = config_map.get("data")
    return data if isinstance(data, dict) else {}


def _written_by_checkers(config_map: Object) -> set[str]:
    """The keys that were written under a checker's name and nobody else's."""
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
