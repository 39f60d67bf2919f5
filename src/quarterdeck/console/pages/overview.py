"""The overview: the release, and all cluster operators, the worst first."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from aiohttp import web

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS
from quarterdeck.api.meta import Key, Object
from quarterdeck.console.account import ConsoleAccount, Selected, Unreadable
from quarterdeck.console.feed import Fragments
from quarterdeck.console.pages.live import follow
from quarterdeck.console.pages.page import (
    OPERATORS,
    LivePage,
    answer_page,
    attention,
    judged_operators,
)
from quarterdeck.console.pages.progress import AppliedRelease, progress_of
from quarterdeck.console.render import fragment
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.status.health import NEED_ATTENTION, ORDER, OperatorHealth, OperatorState
from quarterdeck.status.staleness import CHECKED
from quarterdeck.status.writers import condition_writes

VERSION = Selected(resource=CLUSTER_VERSIONS.plain, name="version")
KUBECTL = ("kubectl get clusterversion,clusteroperators",)
SORTS = ("worst", "name", "since")
MAX_MESSAGE = 400
"""The most characters of a message in the table; the operator's page has the rest."""
GROUPS = (
    ("well", "well", (OperatorState.WELL,)),
    ("bad", "unavailable or degraded", (OperatorState.UNAVAILABLE, OperatorState.DEGRADED)),
    ("stale", "stale", (OperatorState.STALE,)),
    ("moving", "progressing", (OperatorState.PROGRESSING,)),
    ("unknown", "unknown", (OperatorState.UNKNOWN,)),
    ("off", "disabled", (OperatorState.DISABLED,)),
)
"""The groups of states that are counted, and can be selected."""
GROUP_OF = {state: name for name, _, states in GROUPS for state in states}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """An operator in the table."""

    name: str
    state: OperatorState
    group: str
    rank: int
    version: str
    since: datetime | None
    message: str
    flags: tuple[tuple[str, str], ...]
    """The type and the status of each condition that every operator has."""
    checking: bool


def row_of(health: OperatorHealth, alive: datetime | None) -> Row:
    """The row of an operator; `alive` is when it last wrote its conditions. Pure."""
    decisive = health.decisive_condition
    return Row(
        name=health.name,
        state=health.state,
        group=GROUP_OF[health.state],
        rank=ORDER.index(health.state),
        version=health.versions.get("operator", ""),
        since=alive if health.state is OperatorState.STALE and alive else _since(health),
        message=_message(health, decisive.message if decisive else ""),
        flags=tuple((type_, health.status(type_) or "absent") for type_ in CHECKED),
        checking=health.checking,
    )


def _since(health: OperatorHealth) -> datetime | None:
    decisive = health.decisive_condition
    return decisive.since if decisive else None


def _message(health: OperatorHealth, message: str) -> str:
    if health.state is OperatorState.STALE:
        known = ", ".join(
            f"{one.type}={one.last_known}" for one in health.conditions if one.type in CHECKED
        )
        return f"No sign of life. Last known: {known}."
    if not health.conditions:
        return "It has not reported anything."
    text = " ".join(message.split())
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}…"


def last_alive(obj: Object, now: datetime) -> datetime | None:
    """When an operator last wrote its own conditions. Pure."""
    times = [one.time for one in condition_writes(obj) if one.proves_life(now) and one.time]
    return max(times, default=None)


def summary(rows: Sequence[Row]) -> list[tuple[str, str, int]]:
    """The groups, and how many operators are in each; an empty group `unknown` is left out."""
    counts = Counter(row.group for row in rows)
    return [
        (name, text, counts[name]) for name, text, _ in GROUPS if name != "unknown" or counts[name]
    ]


def headline(rows: Sequence[Row], progress: AppliedRelease | None) -> str:
    """The state of the cluster, in a sentence or two."""
    if not rows:
        return "There are no cluster operators yet."
    count = sum(row.state in NEED_ATTENTION for row in rows)
    words = {0: "No operator needs", 1: "One operator needs", 2: "Two operators need"}
    first = f"{words.get(count, f'{count} operators need')} attention."
    if progress is None or not progress.updating:
        return first
    return f"{first} The cluster is {'being installed' if not progress.before else 'updating'}."


class OverviewQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What of the table is shown, and in which order."""

    group: str = ""
    text: str = ""
    sort: str = "worst"


def query_of(given: Mapping[str, str]) -> OverviewQuery:
    """The query in an address; what is not known is left out."""
    group, sort = given.get("state", ""), given.get("sort", "")
    return OverviewQuery(
        group=group if group in {name for name, _, _ in GROUPS} else "",
        text=given.get("q", "")[:200],
        sort=sort if sort in SORTS else "worst",
    )


def shown(row: Row, query: OverviewQuery) -> bool:
    """Whether the query selects the row."""
    text = query.text.lower()
    return (not query.group or row.group == query.group) and (
        text in row.name.lower() or text in row.message.lower()
    )


def ordered(rows: Sequence[Row], sort: str) -> list[Row]:
    """The rows in the order of the query."""
    match sort:
        case "name":
            return sorted(rows, key=lambda row: row.name)
        case "since":
            # The youngest change first; those without a time last.
            return sorted(
                rows, key=lambda row: (row.since is None, -(row.since or _EPOCH).timestamp())
            )
    return sorted(rows, key=lambda row: (row.rank, row.name))


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def routes() -> list[web.RouteDef]:
    """The routes of the overview."""
    return [web.get("/", _show), web.get("/live/overview", _live)]


async def _show(request: web.Request) -> web.StreamResponse:
    console, account = request.app[CONSOLE], request[SESSION].account
    query = query_of(request.query)

    # The two caches are filled at the same time.
    operators, _ = await asyncio.gather(
        judged_operators(console, account), release_progress(account)
    )
    rows = await rows_of(account, operators)

    async def fragments() -> Fragments:
        return await _fragments(console, account, operators, rows)

    async def extra() -> dict[str, Any]:
        return {
            "query": query,
            "rows": [(row.name, shown(row, query)) for row in ordered(rows, query.sort)],
            "groups": summary(rows),
        }

    return await answer_page(request, _page(fragments, extra))


async def _live(request: web.Request) -> web.StreamResponse:
    console, account = request.app[CONSOLE], request[SESSION].account

    async def fragments() -> Fragments:
        operators = await judged_operators(console, account)
        return await _fragments(console, account, operators, await rows_of(account, operators))

    return await follow(request, _page(fragments))


def _page(fragments: Callable[[], Awaitable[Fragments]], extra: Any = None) -> LivePage:
    return LivePage(
        path="/",
        title="Overview",
        template="overview.html",
        selections=(OPERATORS, VERSION),
        fragments=fragments,
        extra=extra,
        kubectl=KUBECTL,
    )


async def rows_of(account: ConsoleAccount, operators: Sequence[OperatorHealth]) -> list[Row]:
    """The rows of these operators, in their order."""
    cache = await account.objects(OPERATORS)
    now = account.client.now()
    known: dict[str, tuple[OperatorHealth, Row]] = account.rows
    found: dict[str, tuple[OperatorHealth, Row]] = {}
    for health in operators:
        before = known.get(health.name)
        if health.state is OperatorState.STALE:
            obj = cache.get(Key("", health.name))
            row = row_of(health, last_alive(obj, now) if obj is not None else None)
        else:
            # Made once for each state of an operator: most have not changed.
            row = before[1] if before and before[0] is health else row_of(health, None)
        found[health.name] = (health, row)
    account.rows = found
    return [row for _, row in found.values()]


async def release_progress(account: ConsoleAccount) -> AppliedRelease | None:
    """The progress of the release; None if the cluster has no ClusterVersion to read."""
    try:
        found = (await account.objects(VERSION)).get(Key("", "version"))
    except Unreadable:
        return None
    return progress_of(found) if found is not None else None


async def _fragments(
    console: Console,
    account: ConsoleAccount,
    operators: Sequence[OperatorHealth],
    rows: Sequence[Row],
) -> Fragments:
    progress = await release_progress(account)
    made = console.templates
    fragments = {
        "headline": fragment(made, "_headline.html", text=headline(rows, progress)),
        "release": fragment(made, "_release.html", progress=progress, link=True),
        "summary": fragment(made, "_summary.html", groups=summary(rows)),
        **attention(console, operators),
    }
    known: dict[Row, str] = account.rendered_rows
    current = {}
    for row in rows:
        # Rendered once for each state of an operator: most rows have not changed.
        html = known.get(row) or fragment(made, "_row.html", row=row)
        fragments[f"row-{row.name}"] = current[row] = html
    account.rendered_rows = current
    return fragments
