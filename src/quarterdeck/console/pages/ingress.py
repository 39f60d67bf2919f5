"""Ingress: what each IngressController logs, and a form that changes it."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operator_v1 import INGRESS_CONTROLLERS, IngressController
from quarterdeck.console.account import ConsoleAccount, Selected
from quarterdeck.console.feed import Fragments
from quarterdeck.console.pages.access_log_form import (
    COOKIES,
    DESTINATIONS,
    EMPTY_REQUESTS,
    FACILITIES,
    AccessLogFields,
    FieldFault,
    fields_in,
    fields_of,
    logging_of,
)
from quarterdeck.console.pages.changes import (
    compared,
    is_resource_version,
    merge_patch,
    typed,
)
from quarterdeck.console.pages.live import live_routes
from quarterdeck.console.pages.page import (
    FIELD_MANAGER,
    NAME,
    OPERATORS,
    LivePage,
    answer_page,
    form_of,
    navigation_fragment,
    quoted,
    rights,
    see,
)
from quarterdeck.console.pages.progress import conditions_in
from quarterdeck.console.render import fragment
from quarterdeck.console.rights import Action
from quarterdeck.console.security import BadForm
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.controller.metadata import fence
from quarterdeck.kube import Conflict, Forbidden, Invalid

PLAIN = INGRESS_CONTROLLERS.plain
CONTROLLERS = Selected(resource=PLAIN)
MAX_EXPLAINED = 2
"""How many previews are made at a time: each runs HAProxy."""
EXPLAINING: web.AppKey[asyncio.Semaphore] = web.AppKey("explaining", asyncio.Semaphore)


class ControllerRow(msgspec.Struct, frozen=True, kw_only=True):
    """An IngressController in the list."""

    namespace: str
    name: str
    destination: str
    format: str
    conditions: tuple[tuple[str, str], ...]
    """Type and status."""
    logging_message: str
    """What AccessLoggingReady says: whether lines arrive, and how many were lost."""
    domain: str

    @property
    def path(self) -> str:
        """The page of this one."""
        return quoted("ingress", self.namespace, self.name)


def controller_row(controller: Object) -> ControllerRow:
    """The row of an IngressController. Pure."""
    spec, status = controller.get("spec") or {}, controller.get("status") or {}
    fields = fields_of(spec.get("logging"))
    where = f"{fields.address}:{fields.port}" if fields.destination == "Syslog" else ""
    conditions = conditions_in(controller)
    ready = conditions.get("AccessLoggingReady") or {}
    wanted = ("Admitted", "Available", "Degraded", "AccessLoggingReady")
    return ControllerRow(
        namespace=controller["metadata"]["namespace"],
        name=controller["metadata"]["name"],
        destination=f"{fields.destination} {where}".strip() or "not logged",
        format=(fields.format or "httplog, HAProxy's own") if fields.destination else "–",  # noqa: RUF001
        conditions=tuple(
            (type_, str(conditions[type_].get("status"))) for type_ in wanted if type_ in conditions
        ),
        logging_message=str(ready.get("message") or ""),
        domain=str(status.get("domain") or spec.get("domain") or ""),
    )


def routes() -> list[web.RouteDef]:
    """The routes of ingress."""
    at = f"/ingress/{{namespace:{NAME}}}/{{name:{NAME}}}"
    return [
        *live_routes("/ingress", _list_page),
        *live_routes(at, _found_page),
        web.post(at, _change),
    ]


async def _list_page(request: web.Request) -> LivePage:
    console, account = request.app[CONSOLE], request[SESSION].account

    async def fragments() -> Fragments:
        cache = await account.objects(CONTROLLERS)
        rows = sorted(map(controller_row, cache.list()), key=lambda one: (one.namespace, one.name))
        return {
            "controllers": fragment(
                console.templates, "_controllers.html", rows=rows, missing=cache.missing
            ),
            **(await navigation_fragment(console, account)),
        }

    return LivePage(
        path="/ingress",
        title="Ingress",
        template="ingress.html",
        selections=(OPERATORS, CONTROLLERS),
        fragments=fragments,
        kubectl=("kubectl get ingresscontrollers --all-namespaces",),
    )


async def _found_page(request: web.Request) -> LivePage:
    controller = await _controller(request[SESSION].account, _key(request))
    fields = fields_of((controller.get("spec") or {}).get("logging"))
    return _page(request, {"fields": fields})


def _key(request: web.Request) -> Key:
    return Key(request.match_info["namespace"], request.match_info["name"])


def _patch(key: Key) -> Action:
    return Action(verb="patch", resource=PLAIN, namespace=key.namespace, name=key.name)


async def _controller(account: ConsoleAccount, key: Key) -> Object:
    found: Object | None = (await account.objects(CONTROLLERS)).get(key)
    if found is None:
        raise web.HTTPNotFound(text=f"There is no IngressController {key}.")
    return found


def _page(request: web.Request, values: Mapping[str, Any] | None = None) -> LivePage:
    console, account, key = request.app[CONSOLE], request[SESSION].account, _key(request)

    async def extra() -> Mapping[str, Any]:
        return {
            "key": key,
            "may": await rights(account, change=_patch(key)),
            "destinations": DESTINATIONS,
            "facilities": FACILITIES,
            "empty_requests": EMPTY_REQUESTS,
            "cookies": COOKIES,
            "preview": None,
            "fault": "",
            **(values or {}),
        }

    return LivePage(
        path=quoted("ingress", key.namespace, key.name),
        title=f"Ingress {key.name}",
        template="ingress_controller.html",
        selections=(OPERATORS, CONTROLLERS),
        fragments=lambda: _fragments(console, account, key),
        extra=extra,
        kubectl=(
            f"kubectl edit ingresscontroller {key.name} --namespace {key.namespace}",
            f"quarterdeck ingress explain {key.name} --namespace {key.namespace}",
        ),
    )


async def _fragments(console: Console, account: ConsoleAccount, key: Key) -> Fragments:
    found = (await account.objects(CONTROLLERS)).get(key)
    return {
        "controller": fragment(
            console.templates,
            "_controller.html",
            row=controller_row(found) if found else None,
            conditions=list(conditions_in(found or {}).values()),
            key=key,
        ),
        **(await navigation_fragment(console, account)),
    }


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What a change would do."""

    version: str
    """The resource version that the change is based on."""
    lines: list[Any]
    changed: bool
    explanation: Object


async def _change(request: web.Request) -> web.StreamResponse:
    form = await form_of(request)
    # Also before a preview: it runs HAProxy with what the form has.
    right = await request[SESSION].account.may(_patch(_key(request)))
    if not right.allowed:
        raise web.HTTPForbidden(text=right.reason)
    fields = fields_in(form)
    try:
        return await _preview_or_apply(request, form, fields)
    except FieldFault as fault:
        values = {"fields": fields, "fault": str(fault)}
    except Invalid as error:
        values = {"fields": fields, "fault": error.message}
    except Conflict:
        why = "It has changed since the preview. Look at the preview again."
        values = {"fields": fields, "fault": why}
    response = await answer_page(request, _page(request, values))
    response.set_status(422)
    return response


async def _preview_or_apply(
    request: web.Request, form: Mapping[str, str], fields: AccessLogFields
) -> web.StreamResponse:
    session, key = request[SESSION], _key(request)
    client = session.account.client
    live = await client.get(PLAIN, key.name, key.namespace)
    before, after = (live.get("spec") or {}).get("logging"), logging_of(fields)
    if form.get("action") == "apply":
        patch = {
            "metadata": {**fence(live), "resourceVersion": form.get("version", "")},
            "spec": {"logging": merge_patch(before, after)},
        }
        if not is_resource_version(form.get("version", "")):
            raise BadForm(400, "the form does not say what it is based on; look at the preview")
        await client.patch(PLAIN, key.name, patch, key.namespace, field_manager=FIELD_MANAGER)
        session.say("The access logs are changed. The operator rolls the router out if it has to.")
        return see(quoted("ingress", key.namespace, key.name))
    preview = Preview(
        version=live["metadata"]["resourceVersion"],
        lines=compared(_spec(before), _spec(after)),
        changed=before != after,
        explanation=await _explained(request, live, after),
    )
    return await answer_page(request, _page(request, {"fields": fields, "preview": preview}))


def _spec(logging: Any) -> Any:
    return None if logging is None else {"logging": logging}


async def _explained(request: web.Request, live: Object, logging: Object | None) -> Object:
    """What the IngressController would mean with other logging."""
    spec = {**(live.get("spec") or {}), "logging": logging}
    wanted = {**live, "spec": {name: value for name, value in spec.items() if value is not None}}
    try:
        controller = typed(wanted, IngressController)
    except msgspec.ValidationError as error:
        raise FieldFault("spec.logging", "", str(error)) from None
    explain = request.app[CONSOLE].sources.ingress
    async with request.app[EXPLAINING]:
        try:
            return await explain(controller, request[SESSION].account.client)
        except Forbidden:
            # Without the right to read the router's objects there is still the line.
            return await explain(controller, None)
