"""Logging in and out: with a token, or with a one-time link.

A one-time link shows a page first: a program that only looks at addresses does not use it up.
"""

from typing import Any
from urllib.parse import parse_qs

from aiohttp import web

from quarterdeck.console.account import ConsoleAccount
from quarterdeck.console.pages.page import body_of, form_of, html, new_secret, see
from quarterdeck.console.security import (
    Arrival,
    BadForm,
    is_encrypted,
    last_address,
    parsed_form,
    safe_next,
    same_secret,
    session_cookie,
    why_no_log_in,
)
from quarterdeck.console.state import CONSOLE, SESSION
from quarterdeck.kube import KubeError, Unauthorized
from quarterdeck.log import get_logger

log = get_logger("console.login")

FORM_COOKIE = "quarterdeck-login"
"""Ties a log-in form to the browser that got it; it is worth nothing after the log-in."""

WHY = {
    "ended": "Your session has ended. Log in again.",
    "out": "You are logged out.",
}


def log_in_routes() -> list[web.RouteDef]:
    """The routes of logging in and out."""
    return [
        web.get("/login", _form),
        web.post("/login", _log_in),
        web.get("/link/{code}", _link_form),
        web.post("/link/", _use_link),
        web.post("/logout", _log_out),
    ]


def arrival_of(request: web.Request) -> Arrival:
    """How the request reached us."""
    transport = request.transport
    peer = transport.get_extra_info("peername") if transport else None
    return Arrival(
        peer=str(peer[0]) if peer else "",
        host=request.headers.get("Host", ""),
        tls=bool(transport and transport.get_extra_info("ssl_object")),
        forwarded_proto=request.headers.get("X-Forwarded-Proto", ""),
        forwarded=any(
            name in request.headers
            for name in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Via")
        ),
    )


def _address_of(request: web.Request) -> str:
    """The address that attempts are counted for: the client's, as the proxy before us has it."""
    arrival = arrival_of(request)
    if request.app[CONSOLE].settings.behind_tls:
        return last_address(request.headers.getall("X-Forwarded-For", []))
    return arrival.peer


async def _form(request: web.Request) -> web.Response:
    if SESSION in request:
        return see("/")
    target = safe_next(_query(request, "next"))
    return _page(request, "login.html", target=target, fault=WHY.get(_query(request, "why"), ""))


def _query(request: web.Request, name: str) -> str:
    try:
        return parse_qs(request.query_string, max_num_fields=20).get(name, [""])[-1]
    except ValueError:
        return ""


def _page(request: web.Request, template: str, *, status: int = 200, **values: Any) -> web.Response:
    """A log-in page, with a new form secret in its cookie and in its form."""
    console = request.app[CONSOLE]
    refused = why_no_log_in(arrival_of(request), behind_tls=console.settings.behind_tls)
    secret = new_secret()
    text = console.templates.get_template(template).render(
        secret=secret,
        refused=refused,
        cluster=console.settings.cluster,
        server=console.connection.server,
        **{"fault": "", "target": "/", **values},
    )
    response = html(text, 403 if refused and status == 200 else status)
    response.set_cookie(
        FORM_COOKIE,
        secret,
        max_age=3600,
        path="/",
        httponly=True,
        samesite="Strict",
        secure=_encrypted(request),
    )
    return response


def _encrypted(request: web.Request) -> bool:
    return is_encrypted(arrival_of(request), behind_tls=request.app[CONSOLE].settings.behind_tls)


async def _checked_form(request: web.Request) -> dict[str, str]:
    """The fields of a log-in form; raises if this browser did not get the form, or too often."""
    console = request.app[CONSOLE]
    form = parsed_form(request.content_type, await body_of(request))
    if refused := why_no_log_in(arrival_of(request), behind_tls=console.settings.behind_tls):
        raise BadForm(403, refused)
    if not same_secret(form.get("secret", ""), request.cookies.get(FORM_COOKIE, "")):
        raise BadForm(403, "this form is not from a page of this browser; load the page again")
    if wait := console.limit.wait(_address_of(request), console.clock()):
        seconds = str(int(wait) + 1)
        raise web.HTTPTooManyRequests(
            text=f"Try again in {seconds} seconds.", headers={"Retry-After": seconds}
        )
    return form


async def _log_in(request: web.Request) -> web.Response:
    console = request.app[CONSOLE]
    form = await _checked_form(request)
    target = safe_next(form.get("next", ""))
    token = form.get("token", "").strip()
    if not token:
        fault = "Give a token."
        return _page(request, "login.html", status=400, target=target, fault=fault)
    try:
        account = await console.account_of_token(token)
    except ValueError:
        fault = "This is not a token: it has a character that a token cannot have."
        return _page(request, "login.html", status=400, target=target, fault=fault)
    except Unauthorized:
        log.warning("log-in refused", address=_address_of(request))
        fault = "The API server does not accept this token. It may have expired."
        return _page(request, "login.html", status=401, target=target, fault=fault)
    except KubeError as error:
        fault = f"The API server does not answer: {error}"
        return _page(request, "login.html", status=503, target=target, fault=fault)
    return _logged_in(request, account, target)


async def _link_form(request: web.Request) -> web.Response:
    console = request.app[CONSOLE]
    code = request.match_info["code"]
    if not console.links.valid(code, console.clock()):
        return _used_link(request)
    return _page(request, "link.html", code=code)


async def _use_link(request: web.Request) -> web.Response:
    console = request.app[CONSOLE]
    form = await _checked_form(request)
    code = form.get("code", "")
    if not console.links.valid(code, console.clock()):
        return _used_link(request)
    try:
        account = await console.account_of_link()
    except KubeError as error:
        return _page(request, "login.html", status=503, fault=str(error))
    # Only now: while the API server does not answer, the link stays good.
    if not console.links.use(code, console.clock()):
        return _used_link(request)
    return _logged_in(request, account, "/")


def _used_link(request: web.Request) -> web.Response:
    fault = "This link was used already, or is too old. Log in with a token."
    return _page(request, "login.html", status=410, fault=fault)


def _logged_in(request: web.Request, account: ConsoleAccount, target: str) -> web.Response:
    """Begin a new session; one that this browser had before ends."""
    console = request.app[CONSOLE]
    if SESSION in request:
        console.sessions.end(request[SESSION])
    console.limit.succeeded(_address_of(request))
    session = console.sessions.begin(account, console.clock())
    log.info("logged in", user=account.user, address=_address_of(request))
    response = see(target)
    secure = _encrypted(request)
    response.set_cookie(
        session_cookie(arrival_of(request).host, encrypted=secure),
        session.id,
        path="/",
        httponly=True,
        samesite="Strict",
        secure=secure,
    )
    response.del_cookie(FORM_COOKIE, path="/")
    return response


async def _log_out(request: web.Request) -> web.Response:
    await form_of(request)
    request.app[CONSOLE].sessions.end(request[SESSION])
    response = see("/login?why=out")
    name = session_cookie(arrival_of(request).host, encrypted=_encrypted(request))
    response.del_cookie(name, path="/", secure=_encrypted(request))
    response.headers["Clear-Site-Data"] = '"cache", "storage"'
    return response
