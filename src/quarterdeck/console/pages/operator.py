"""One operator: conditions, sign of life, who wrote what, events, related objects."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from aiohttp import web

from quarterdeck.api.meta import EVENTS, Key, Object
from quarterdeck.api.times import parse_time
from quarterdeck.console.account import Account, Action, Selected, Unreadable
from quarterdeck.console.feed import Fragments
from quarterdeck.console.pages.live import live_routes
from quarterdeck.console.pages.overview import last_alive, row_of
from quarterdeck.console.pages.page import (
    NAME,
    OPERATORS,
    LivePage,
    judged_operators,
    navigation_fragment,
)
from quarterdeck.console.render import fragment
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.kube import KubeError
from quarterdeck.status.writers import condition_writes

MAX_EVENTS = 30
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


def events_about(name: str) -> Selected:
    """The events about a ClusterOperator."""
    return Selected(
        resource=EVENTS, field_selector=f"regarding.kind=ClusterOperator,regarding.name={name}"
    )


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
        selections=(OPERATORS, events_about(name)),
        fragments=lambda: _fragments(console, account, name),
        extra=extra,
        kubectl=(
            f"kubectl get clusteroperator {name} -o yaml",
            f"quarterdeck staleness explain {name}",
        ),
    )


async def _fragments(console: Console, account: Account, name: str) -> Fragments:
    made = console.templates
    nav = await navigation_fragment(console, account)
    obj = (await account.objects(OPERATORS)).get(Key("", name))
    health = next(
        (one for one in await judged_operators(console, account) if one.name == name), None
    )
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
            alive=alive,
            life=await _sign_of_life(console, account, name),
            writes=sorted(
                (one for one in condition_writes(obj)), key=lambda one: one.time or _NEVER
            )[::-1],
            history=list(account.history.get(name, ())),
            related=related(health.related_objects),
            events=events,
            unseen=unseen,
        ),
        **nav,
    }


_NEVER = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


async def _sign_of_life(console: Console, account: Account, name: str) -> Object | None:
    try:
        found = await console.sources.staleness(account.client, name)
    except KubeError:
        return None
    # The time at which it was asked would make each look a change.
    return {field: value for field, value in found.items() if field != "now"}


async def _events(account: Account, name: str) -> tuple[list[ShownEvent], str]:
    """The events about the operator, and why they cannot be seen."""
    selected = events_about(name)
    right = await account.may(Action(verb="list", resource=EVENTS))
    if not right.allowed:
        return [], right.reason
    try:
        return shown_events((await account.objects(selected)).list()), ""
    except Unreadable as error:
        return [], str(error)
