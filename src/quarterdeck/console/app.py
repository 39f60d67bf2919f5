"""The web application: its routes, and what happens around each request.

A request is refused before anything else if it is meant for another host. Then its session is
found; without one there is only the log-in. Errors become pages that say what to do next.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiohttp import web

from quarterdeck.console.account import Unanswered, Unreadable, who_is
from quarterdeck.console.connections import HEAD_TIMEOUT, Connections, server_log
from quarterdeck.console.login import arrival_of, log_in_routes
from quarterdeck.console.pages import (
    baremetal,
    ingress,
    log_level,
    operator,
    overview,
    release,
    subscriptions,
)
from quarterdeck.console.pages.page import Handler, error_page, see
from quarterdeck.console.render import STATIC, static, static_url
from quarterdeck.console.security import (
    HEADERS,
    MAX_FORM_BYTES,
    STRICT_TRANSPORT,
    BadForm,
    is_encrypted,
    is_own_host,
    is_own_origin,
    safe_next,
    session_cookie,
)
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.controller.tasks import guarded
from quarterdeck.kube import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Unauthorized,
)
from quarterdeck.log import get_logger

log = get_logger("console")

CLEAN_UP_PERIOD = 20.0
IDENTITY_PERIOD = 60.0
"""Seconds after which the API server is asked again whether it accepts an account."""
KEEP_ALIVE = 75.0
"""Seconds for which a connection without a request stays open."""
OPEN_PATHS = ("/login", "/link/", "/static/", "/healthz")
"""What is answered without a session."""
CONNECTIONS: web.AppKey[list[Connections]] = web.AppKey("connections", list)
"""The connections of the server that serves the application, if one does."""
TITLES = {
    400: "This request cannot be read",
    403: "This is not allowed",
    404: "There is no such page",
    405: "This page cannot be used that way",
    408: "The request takes too long",
    409: "It has changed meanwhile",
    413: "This request is too large",
    415: "This is not a form of the console",
    422: "The API server refuses this",
    429: "Too many attempts",
    503: "The API server does not answer",
}


def make_app(console: Console) -> web.Application:
    """The application; its clean-up ends all sessions."""
    app = web.Application(
        middlewares=[_timed, _errors, _own_host, _with_session, _own_origin],
        client_max_size=MAX_FORM_BYTES,
    )
    app[CONSOLE] = console
    app[CONNECTIONS] = []
    app[release.PAYLOADS] = release.ReadPayloads(console.settings.releases)
    app[ingress.EXPLAINING] = asyncio.Semaphore(ingress.MAX_EXPLAINED)
    app.on_response_prepare.append(_add_headers)
    app.on_shutdown.append(_end_sessions)
    app.cleanup_ctx.append(_cleaning)
    app.add_routes(
        [
            web.get("/healthz", _healthz),
            web.get("/static/{version}/{name}", _static),
            *log_in_routes(),
        ]
    )
    for module in (overview, operator, log_level, release, ingress, subscriptions, baremetal):
        app.add_routes(module.routes())
    return app


async def _end_sessions(app: web.Application) -> None:
    """End the live pages first: the server waits for those that it still answers."""
    app[CONSOLE].end_sessions()


async def _cleaning(app: web.Application) -> AsyncIterator[None]:
    console = app[CONSOLE]
    tasks = [
        asyncio.create_task(_every(CLEAN_UP_PERIOD, console.close_unused), name="console clean-up"),
        asyncio.create_task(
            _every(IDENTITY_PERIOD, lambda: _check_accounts(console)), name="console identities"
        ),
    ]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await console.close()


async def _every(period: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(period)
        try:
            # Whatever it is, also a cancellation from inside: sessions must go on being ended.
            await guarded("clean-up", work())
        except Exception:
            log.exception("clean-up failed, will try again")


async def _check_accounts(console: Console) -> None:
    """End the sessions of accounts whose token was revoked or has expired."""
    for account in list(console.accounts.values()):
        try:
            await who_is(account.client)
        except Unauthorized:
            console.end_account(account)
        except KubeError:
            continue  # the server does not answer: that says nothing about the token


async def _healthz(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in STATIC or request.path != static_url(name):
        raise web.HTTPNotFound
    response = web.Response(body=static(name), content_type=STATIC[name], charset="utf-8")
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    return response


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
    response.headers.pop("Server", None)
    response.headers.setdefault("Cache-Control", "no-store")
    if is_encrypted(arrival_of(request), behind_tls=request.app[CONSOLE].settings.behind_tls):
        response.headers["Strict-Transport-Security"] = STRICT_TRANSPORT


@web.middleware
async def _timed(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Say when a request has come, and when it is answered."""
    transport = request.transport
    for one in request.app[CONNECTIONS]:
        one.began(transport)
    try:
        return await handler(request)
    finally:
        for one in request.app[CONNECTIONS]:
            one.ended(transport)


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn errors into pages."""
    try:
        return await handler(request)
    except web.HTTPException as answer:
        if answer.status < 400:
            raise
        title = TITLES.get(answer.status, answer.reason or "")
        page = error_page(request, answer.status, title, answer.text or "")
        for name in {"Allow", "Retry-After"} & answer.headers.keys():
            page.headers[name] = answer.headers[name]
        return page
    except BadForm as error:
        return error_page(request, error.status, TITLES[error.status], str(error))
    except Unanswered as error:
        return error_page(request, 503, TITLES[503], str(error))
    except Unreadable as error:
        return error_page(request, 403, "You may not see this", str(error))
    except Unauthorized:
        session = request.get(SESSION)
        if session is not None:
            request.app[CONSOLE].end_account(session.account)
        return see("/login?why=ended")
    except ApiError as error:
        status = _status(error)
        title = TITLES.get(status, TITLES[422])
        return error_page(request, status, title, error.message or str(error))
    except KubeError as error:
        return error_page(request, 503, TITLES[503], str(error))
    except ConnectionError:
        raise  # the browser is gone
    except Exception:
        # A fault of ours: the log has it, the page does not.
        log.exception("page failed", path=request.path)
        return error_page(request, 500, "The console has a fault", "Its log says more.")


def _status(error: ApiError) -> int:
    match error:
        case Forbidden():
            return 403
        case NotFound():
            return 404
        case Conflict():
            return 409
        case Invalid():
            return 422
    return error.code if 400 <= error.code < 500 else 503


@web.middleware
async def _own_host(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse requests for other hosts."""
    console = request.app[CONSOLE]
    host = request.headers.get("Host", "")
    if request.path != "/healthz" and not is_own_host(host, console.settings.host_names):
        raise web.HTTPForbidden(
            text="This console has another name; start it with --host-name to give it this one."
        )
    return await handler(request)


@web.middleware
async def _with_session(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Find the session; without one, continue at the log-in."""
    console = request.app[CONSOLE]
    arrival = arrival_of(request)
    encrypted = is_encrypted(arrival, behind_tls=console.settings.behind_tls)
    if identifier := request.cookies.get(session_cookie(arrival.host, encrypted=encrypted)):
        session = console.sessions.find(identifier, console.clock())
        if session is not None and not session.account.ended.is_set():
            request[SESSION] = session
    if SESSION not in request and not request.path.startswith(OPEN_PATHS):
        if request.match_info.http_exception is not None:
            return await handler(request)
        # A page whose stream has ended asks by HEAD whether to log in again.
        if request.method not in ("GET", "HEAD") or request.path.startswith("/live/"):
            raise web.HTTPForbidden(text="Your session has ended. Log in again.")
        target = safe_next(request.path_qs)
        return see("/login" if target == "/" else f"/login?next={target.replace('&', '%26')}")
    return await handler(request)


@web.middleware
async def _own_origin(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse forms from pages of other origins."""
    if request.method in ("GET", "HEAD"):
        return await handler(request)
    settings = request.app[CONSOLE].settings
    encrypted = is_encrypted(arrival_of(request), behind_tls=settings.behind_tls)
    host = request.headers.get("Host", "")
    if not is_own_origin(request.headers, host, settings.host_names, encrypted=encrypted):
        raise web.HTTPForbidden(text="The form comes from a page of somebody else.")
    return await handler(request)


@contextlib.asynccontextmanager
async def serving(console: Console, ssl_context: Any = None) -> AsyncIterator[tuple[str, int]]:
    """Serve the console while the context lasts; gives its address and port."""
    settings = console.settings
    app = make_app(console)
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=server_log(),
        auto_decompress=False,
        shutdown_timeout=1.0,
        keepalive_timeout=KEEP_ALIVE,
    )
    await runner.setup()
    if runner.server is None:
        raise RuntimeError("the HTTP server is not set up")
    app[CONNECTIONS].append(connections := Connections(runner.server))
    try:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            connections,
            settings.address,
            settings.port,
            ssl=ssl_context,
            ssl_handshake_timeout=HEAD_TIMEOUT if ssl_context else None,
        )
        try:
            address: tuple[str, int] = server.sockets[0].getsockname()[:2]
            yield address
        finally:
            server.close()
    finally:
        await runner.cleanup()
        await connections.end()
