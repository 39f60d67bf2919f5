"""What every page is made of, and how it is answered."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from aiohttp import web
from markupsafe import Markup

from quarterdeck.api.config_v1 import CLUSTER_OPERATORS
from quarterdeck.api.meta import CONFIG_MAPS, Object
from quarterdeck.console.account import ConsoleAccount, Selected, Unreadable
from quarterdeck.console.feed import Fragments, digest
from quarterdeck.console.render import fragment, with_ages
from quarterdeck.console.rights import Action, Permission
from quarterdeck.console.security import BadForm, parsed_form, same_secret
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.status.health import NEED_ATTENTION, OperatorHealth, health_of, worst_first
from quarterdeck.status.writers import CHECKER_SETTINGS

NAME = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
"""The pattern of a name in a path; anything else is no page."""
BODY_TIMEOUT = 15.0
"""Seconds that the body of a form may take."""
FIELD_MANAGER = "quarterdeck-console"
OPERATORS = Selected(resource=CLUSTER_OPERATORS.plain, keep_managed_fields=True, keep_running=True)
CHECKERS = Selected(
    resource=CONFIG_MAPS,
    namespace=CHECKER_SETTINGS.namespace,
    name=CHECKER_SETTINGS.name,
    keep_managed_fields=True,
)
"""The settings of the staleness checkers."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NavEntry(msgspec.Struct, frozen=True):
    """A link to a page, at the side of every page."""

    path: str
    title: str


NAVIGATION: Mapping[str, tuple[NavEntry, ...]] = {
    "Cluster": (
        NavEntry("/", "Overview"),
        NavEntry("/log-level", "Log level"),
        NavEntry("/release", "Release"),
    ),
    "Operators": (
        NavEntry("/ingress", "Ingress"),
        NavEntry("/subscriptions", "Subscriptions"),
        NavEntry("/baremetal", "Bare metal"),
    ),
}


class LivePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page whose fragments follow the cluster."""

    path: str
    title: str
    template: str
    selections: tuple[Selected, ...]
    fragments: Callable[[], Awaitable[Fragments]]
    """The fragments now."""
    extra: Callable[[], Awaitable[Mapping[str, Any]]] | None = None
    """What the page has besides: forms, with what its user may do."""
    kubectl: tuple[str, ...] = ()
    """The commands that do the same."""


def session_values(request: web.Request) -> dict[str, Any]:
    """What the layout of every page shows."""
    console, session = request.app[CONSOLE], request[SESSION]
    notice, fault = session.take_notice()
    return {
        "user": session.account.user,
        "cluster": console.settings.cluster,
        "server": console.connection.server,
        "csrf": session.csrf,
        "navigation": NAVIGATION,
        "notice": notice,
        "notice_is_fault": fault,
    }


async def answer_page(request: web.Request, page: LivePage) -> web.Response:
    """The whole page."""
    console, account = request.app[CONSOLE], request[SESSION].account
    fragments = await page.fragments()
    more = dict(await page.extra()) if page.extra else {}
    text = console.templates.get_template(page.template).render(
        **session_values(request),
        title=page.title,
        path=page.path,
        fragments={name: Markup(html) for name, html in fragments.items()},  # noqa: S704 rendered
        state=digest(fragments),
        kubectl=page.kubectl,
        **more,
    )
    return html(with_ages(text, account.client.now()))


def html(text: str, status: int = 200) -> web.Response:
    """A page of HTML, which nobody may keep."""
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8")


def error_page(
    request: web.Request, status: int, title: str, message: str, **values: Any
) -> web.Response:
    """A page that says what went wrong, and what to do."""
    console: Console = request.app[CONSOLE]
    text = console.templates.get_template("error.html").render(
        title=title,
        message=message,
        status=status,
        values=values,
        logged_in=request.get(SESSION) is not None,
    )
    return html(text, status)


async def body_of(request: web.Request) -> bytes:
    """The body of a request, which has to come within a while, and as it is."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise web.HTTPUnsupportedMediaType(text="Send the form without compression.")
    try:
        async with asyncio.timeout(BODY_TIMEOUT):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(text="Send the form again.") from None
    except (web.RequestPayloadError, ConnectionError):
        raise web.HTTPBadRequest(text="The form did not come whole; send it again.") from None


async def form_of(request: web.Request) -> dict[str, str]:
    """The fields of a form of this session; `BadForm` if it is not from one of its pages."""
    form = parsed_form(request.content_type, await body_of(request))
    if not same_secret(form.get("csrf", ""), request[SESSION].csrf):
        raise BadForm(403, "the form is not from a page of this session; load the page again")
    return form


def see(path: str) -> web.Response:
    """Continue at another page of ours."""
    return web.Response(status=303, headers={"Location": path})


def quoted(*segments: str) -> str:
    """A path of these segments."""
    return "/" + "/".join(quote(segment, safe="") for segment in segments)


async def judged_operators(console: Console, account: ConsoleAccount) -> list[OperatorHealth]:
    """The health of all operators, the worst first."""
    found = (await account.objects(OPERATORS)).list()
    judged = judged_once(found, account.judged)
    account.judged = {one.name: (obj, one) for obj, one in zip(found, judged, strict=True)}
    if any(one.depends_on_keeping for one in judged):
        settings, _ = await checker_settings(account)
        kept = console.sources.keeps_upgradeable_false(settings, account.client.now())
        judged = [health_of(one, keep_upgradeable_false=kept) for one in found]
    return worst_first(judged)


async def checker_settings(account: ConsoleAccount) -> tuple[Object | None, str]:
    """The settings that the staleness checkers publish, or why they cannot be read."""
    try:
        found: Object | None = (await account.objects(CHECKERS)).get(CHECKER_SETTINGS)
    except Unreadable as error:
        return None, str(error)
    return found, ""


def judged_once(
    found: Sequence[Object], known: Mapping[str, tuple[Object, OperatorHealth]]
) -> list[OperatorHealth]:
    """The health of each object; one that is the same object as before is not judged again."""
    judged = []
    for obj in found:
        before = known.get(obj["metadata"]["name"])
        judged.append(before[1] if before and before[0] is obj else health_of(obj))
    return judged


async def navigation_fragment(console: Console, account: ConsoleAccount) -> dict[str, str]:
    """The count of operators that need attention, beside the link to the overview."""
    try:
        return attention(console, await judged_operators(console, account))
    except Unreadable:
        return {}


def attention(console: Console, operators: Sequence[OperatorHealth]) -> dict[str, str]:
    """The fragment with the count of operators that need attention."""
    count = sum(one.state in NEED_ATTENTION for one in operators)
    return {"nav-attention": fragment(console.templates, "_attention.html", count=count)}


async def rights(account: ConsoleAccount, **actions: Action) -> dict[str, Permission]:
    """Which of these actions the user may do."""
    return {name: await account.may(action) for name, action in actions.items()}


def new_secret() -> str:
    """A random text that nobody can guess."""
    return secrets.token_urlsafe(32)
