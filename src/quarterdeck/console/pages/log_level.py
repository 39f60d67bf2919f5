"""The log level of the cluster version operator: choose it, for a while, and see its effect."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from aiohttp import web

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS, FEATURE_GATES
from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operator_v1alpha1 import CLUSTER_VERSION_OPERATORS, LogLevel
from quarterdeck.api.times import parse_duration
from quarterdeck.console.account import ConsoleAccount, Selected, Unreadable
from quarterdeck.console.feed import Fragments
from quarterdeck.console.log_tail import LogTail, shown
from quarterdeck.console.pages.live import live_routes, stream
from quarterdeck.console.pages.page import (
    FIELD_MANAGER,
    OPERATORS,
    LivePage,
    form_of,
    navigation_fragment,
    rights,
    see,
)
from quarterdeck.console.render import fragment
from quarterdeck.console.rights import Action
from quarterdeck.console.security import BadForm
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.kube import KubeError

CONFIGS = CLUSTER_VERSION_OPERATORS.plain
CONFIG = Selected(resource=CONFIGS, name="cluster")
GATES = Selected(resource=FEATURE_GATES, name="cluster")
VERSION = Selected(resource=CLUSTER_VERSIONS, name="version")
LEVELS = {
    LogLevel.NORMAL.value: "The outcome of each sync, and every change made to the cluster.",
    LogLevel.DEBUG.value: "Each decision, and why a manifest was skipped.",
    LogLevel.TRACE.value: "Each request to the API server, with its status and duration.",
    LogLevel.TRACE_ALL.value: "The bodies of requests too, but never secrets or tokens.",
}
"""What each level shows."""
DURATIONS = {"1m": "1 minute", "10m": "10 minutes", "30m": "30 minutes", "2h": "2 hours"}
LOG_NAMESPACE = "openshift-cluster-version"
LOG_SELECTOR = "app=cluster-version-operator"
LOG_CONTAINER = "operator"


def lasting(text: str) -> timedelta | None:
    """How long a level lasts; None for good. Raises `BadForm` for what the page does not offer."""
    if not text:
        return None
    found = parse_duration(text) if text in DURATIONS else None
    if found is None:
        raise BadForm(400, f"choose one of {', '.join(DURATIONS)}, or no end")
    return found


def commands(level: str, duration: str) -> tuple[str, ...]:
    """The commands that set a level."""
    for_ = f" --for {duration}" if duration else ""
    return (
        "kubectl patch clusterversionoperator cluster --type=merge "
        f'-p \'{{"spec":{{"operatorLogLevel":"{level}"}}}}\'',
        f"quarterdeck log-level set {level}{for_}",
        f"kubectl logs --namespace {LOG_NAMESPACE} --selector {LOG_SELECTOR} --follow",
    )


def routes() -> list[web.RouteDef]:
    """The routes of the log level."""
    return [
        *live_routes("/log-level", _page),
        web.post("/log-level", _set),
        web.get("/live/log-level/log", _log, allow_head=False),
    ]


async def _page(request: web.Request) -> LivePage:
    console, account = request.app[CONSOLE], request[SESSION].account
    view, _ = await level_now(console, account)

    async def extra() -> Mapping[str, Any]:
        may = await rights(
            account,
            change=Action(verb="patch", resource=CONFIGS, name="cluster"),
            read=log_of(account).reading,
        )
        lines = []
        if may["read"].allowed:
            try:
                lines = await log_of(account).last_lines()
            except KubeError:
                lines = []
        level = view["level"] if view else LogLevel.NORMAL.value
        return {
            "levels": LEVELS,
            "durations": DURATIONS,
            "level": level,
            "exists": view is not None,
            "may": may,
            "lines": shown(lines),
        }

    level = view["level"] if view else LogLevel.NORMAL.value
    return LivePage(
        path="/log-level",
        title="Log level",
        template="log_level.html",
        selections=(OPERATORS, CONFIG, GATES, VERSION),
        fragments=lambda: _fragments(console, account),
        extra=extra,
        kubectl=commands("Debug" if level == "Normal" else level, "30m"),
    )


def log_of(account: ConsoleAccount) -> LogTail:
    """The log of the cluster version operator, which all viewers of the account share."""
    found = account.feeds.get("log")
    if not isinstance(found, LogTail):
        found = LogTail(account, LOG_NAMESPACE, LOG_SELECTOR, LOG_CONTAINER)
        account.feeds["log"] = found
    return found


async def level_now(console: Console, account: ConsoleAccount) -> tuple[Object | None, str]:
    """The log level, or why there is none to show."""
    try:
        cache = await account.objects(CONFIG)
    except Unreadable as error:
        return None, str(error)
    config = cache.get(Key("", "cluster"))
    if config is None:
        missing = "resource type" if cache.missing else "object"
        return (
            None,
            f"This cluster has no ClusterVersionOperator {missing}, so the level is Normal.",
        )
    gates = await _optional(account, GATES, "cluster")
    version = await _optional(account, VERSION, "version")
    return console.sources.log_level(config, gates, version), ""


async def _optional(account: ConsoleAccount, selected: Selected, name: str) -> Any:
    try:
        return (await account.objects(selected)).get(Key("", name))
    except Unreadable:
        return None


async def _fragments(console: Console, account: ConsoleAccount) -> Fragments:
    view, why = await level_now(console, account)
    return {
        "level-state": fragment(console.templates, "_level_state.html", view=view, why=why),
        **(await navigation_fragment(console, account)),
    }


async def _set(request: web.Request) -> web.StreamResponse:
    session, console = request[SESSION], request.app[CONSOLE]
    form = await form_of(request)
    level = form.get("level", "")
    if level not in LEVELS:
        raise BadForm(400, f"choose one of {', '.join(LEVELS)}")
    duration = lasting(form.get("for", ""))
    client = session.account.client
    config = await client.get(CONFIGS, "cluster")
    patch = console.sources.log_level_patch(config, level, duration, client.now())
    await client.patch(CONFIGS, "cluster", patch, field_manager=FIELD_MANAGER)
    until = f" for {DURATIONS[form['for']]}" if duration else ""
    session.say(f"The log level is {level}{until}.")
    return see("/log-level")


async def _log(request: web.Request) -> web.StreamResponse:
    session = request[SESSION]
    tail = log_of(session.account)
    right = await session.account.may(tail.reading)
    if not right.allowed:
        raise web.HTTPForbidden(text=right.reason)
    return await stream(request, tail.viewing())
