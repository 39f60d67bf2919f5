"""One operator: conditions, sign of life, who wrote what, events, related objects."""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
from aiohttp import web

from quarterdeck.api.meta import EVENTS, LEASES, Key, Object
from quarterdeck.api.times import parse_time
from quarterdeck.console.account import ConsoleAccount, Selected, Unanswered, Unreadable
from quarterdeck.console.feed import Fragments
from quarterdeck.console.pages.history import condition_history
from quarterdeck.console.pages.live import live_routes
from quarterdeck.console.pages.overview import last_alive, row_of
from quarterdeck.console.pages.page import (
    CHECKERS,
    NAME,
    OPERATORS,
    LivePage,
    attention,
    checker_settings,
    judged_operators,
)
from quarterdeck.console.pages.sign_of_life import SignOfLife, sign_of_life
from quarterdeck.console.render import fragment
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.status.writers import ManagerWrite, condition_writes, last_writes

MAX_EVENTS = 30
MAX_WRITES = 4
OPERATOR_EVENTS = Selected(resource=EVENTS, field_selector="regarding.kind=ClusterOperator")
"""One selection for all operators: their pages share one watch."""
EVENTS_TIMEOUT = 0.15
"""Seconds that the first page waits for the events."""
MAX_LEASES = 3
"""The most Leases of one operator that are followed."""
_BARE = re.compile(r"[a-z0-9.-]{1,253}")


class ShownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event for people."""

    type: str
    reason: str
    note: str
    about: str
    count: int
    time: datetime | None


def shown_events(events: Sequence[Object]) -> list[ShownEvent]:
    """The events, the newest first. Pure."""
    made = [_shown(one) for one in events]
    made.sort(key=lambda one: (one.time is not None, one.time and one.time.timestamp()))
    return made[::-1][:MAX_EVENTS]


def _shown(event: Object) -> ShownEvent:
    series = event.get("series") or {}
    regarding = event.get("regarding") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("deprecatedLastTimestamp"),
        event.get("eventTime"),
        (event.get("metadata") or {}).get("creationTimestamp"),
    )
    return ShownEvent(
        type=str(event.get("type") or ""),
        reason=str(event.get("reason") or ""),
        note=str(event.get("note") or ""),
        about=f"{regarding.get('kind', '')} {regarding.get('name', '')}".strip(),
        count=int(series.get("count") or event.get("deprecatedCount") or 1),
        time=next((found for one in times if (found := parse_time(one))), None),
    )


class RelatedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that an operator names, and the command that shows it."""

    kind: str
    where: str
    kubectl: str


def related(references: Sequence[Object]) -> list[RelatedObject]:
    """The objects that an operator names. Pure."""
    found = []
    for one in references:
        group, resource, namespace, name = (
            str(one.get(field) or "") for field in ("group", "resource", "namespace", "name")
        )
        kind = f"{resource}.{group}" if group else resource
        words = ["kubectl get", kind, name, f"-n {namespace}" if namespace else ""]
        # A name that a shell could read differently is not offered as a command.
        safe = all(not one or _BARE.fullmatch(one) for one in (kind, namespace, name))
        found.append(
            RelatedObject(
                kind=kind,
                where=f"{namespace}/{name}".strip("/") or "(all)",
                kubectl=" ".join(filter(None, words)) if safe else "",
            )
        )
    return found


def events_about(name: str, events: Iterable[Object]) -> list[Object]:
    """The events about one ClusterOperator. Pure."""
    return [one for one in events if (one.get("regarding") or {}).get("name") == name]


def routes() -> list[web.RouteDef]:
    """The routes of an operator's page."""
    return live_routes(f"/operators/{{name:{NAME}}}", _page)


async def _page(request: web.Request) -> LivePage:
    console, account = request.app[CONSOLE], request[SESSION].account
    name = request.match_info["name"]
    if (await account.objects(OPERATORS)).get(Key("", name)) is None:
        raise web.HTTPNotFound(text=f"There is no cluster operator {name}.")

    async def extra() -> dict[str, Any]:
        return {"name": name}

    return LivePage(
        path=f"/operators/{name}",
        title=name,
        template="operator.html",
        selections=(OPERATORS, CHECKERS, OPERATOR_EVENTS),
        fragments=lambda: _fragments(console, account, name),
        extra=extra,
        kubectl=(
            f"kubectl get clusteroperator {name} -o yaml",
            f"quarterdeck staleness explain {name}",
        ),
    )


async def _fragments(console: Console, account: ConsoleAccount, name: str) -> Fragments:
    made = console.templates
    operators = await judged_operators(console, account)
    nav = attention(console, operators)
    obj = (await account.objects(OPERATORS)).get(Key("", name))
    health = next((one for one in operators if one.name == name), None)
    if obj is None or health is None:
        return {"operator": fragment(made, "_operator_gone.html", name=name), **nav}
    alive = last_alive(obj, account.client.now())
    events, unseen = await _events(account, name)
    return {
        "operator": fragment(
            made,
            "_operator.html",
            row=row_of(health, alive),
            health=health,
            life=await _sign_of_life(console, account, obj),
            writers=last_writes(obj),
            others=other_writes(obj),
            history=condition_history(health.conditions, account.history.get(name, ())),
            followed_since=account.followed_since(OPERATORS),
            related=related(health.related_objects),
            events=events,
            unseen=unseen,
        ),
        **nav,
    }


def other_writes(obj: Object) -> list[ManagerWrite]:
    """The writes that are the last of no condition, the newest first. Pure."""
    last = set(last_writes(obj).values())
    rest = [(one.time, one) for one in condition_writes(obj) if one.time and one not in last]
    return [one for _, one in sorted(rest, key=lambda one: one[0], reverse=True)][:MAX_WRITES]


async def _sign_of_life(console: Console, account: ConsoleAccount, obj: Object) -> SignOfLife:
    settings, unread = await checker_settings(account)
    found: list[Object] = []
    for key in list(console.sources.leases(obj))[:MAX_LEASES]:
        selected = Selected(
            resource=LEASES, namespace=key.namespace, name=key.name, keep_managed_fields=True
        )
        with suppress(Unreadable):
            lease = (await account.objects(selected)).get(key)
            found += [lease] if lease is not None else []
    now = account.client.now()
    return sign_of_life(console.sources.staleness(obj, settings, unread, found, now))


async def _events(account: ConsoleAccount, name: str) -> tuple[list[ShownEvent], str]:
    """The events about the operator, and why they cannot be seen."""
    try:
        # A cluster with many events takes a while to list them: the page comes before them.
        found = (await account.objects(OPERATOR_EVENTS, EVENTS_TIMEOUT)).list()
    except Unanswered:
        return [], "The events are being read."
    except Unreadable as error:
        return [], str(error)
    return shown_events(events_about(name, found)), ""
