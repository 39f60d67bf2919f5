"""Subscriptions: config entries, where each field of a Deployment comes from, approvals."""

from collections.abc import Mapping
from typing import Any

import msgspec
from aiohttp import web

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1alpha1 import (
    CLUSTER_SERVICE_VERSIONS,
    INSTALL_PLANS,
    SUBSCRIPTIONS,
)
from quarterdeck.console.account import Account, Action, Selected, Unreadable
from quarterdeck.console.feed import Fragments
from quarterdeck.console.pages.changes import is_resource_version
from quarterdeck.console.pages.live import live_routes
from quarterdeck.console.pages.page import (
    FIELD_MANAGER,
    NAME,
    OPERATORS,
    LivePage,
    form_of,
    navigation_fragment,
    quoted,
    rights,
    see,
)
from quarterdeck.console.pages.progress import conditions_in
from quarterdeck.console.render import fragment
from quarterdeck.console.security import BadForm
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.kube import KubeError

ALL = Selected(resource=SUBSCRIPTIONS.plain)
PLANS = INSTALL_PLANS.plain
VERSIONS = CLUSTER_SERVICE_VERSIONS.plain


class SubscriptionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A Subscription in the list."""

    namespace: str
    name: str
    package: str
    channel: str
    installed: str
    state: str
    problems: tuple[str, ...]
    entries: int

    @property
    def path(self) -> str:
        """The page of this one."""
        return quoted("subscriptions", self.namespace, self.name)


def subscription_row(subscription: Object) -> SubscriptionRow:
    """The row of a Subscription. Pure."""
    spec, status = subscription.get("spec") or {}, subscription.get("status") or {}
    return SubscriptionRow(
        namespace=subscription["metadata"]["namespace"],
        name=subscription["metadata"]["name"],
        package=str(spec.get("name") or spec.get("package") or ""),
        channel=str(spec.get("channel") or ""),
        installed=str(status.get("installedCSV") or ""),
        state=str(status.get("state") or ""),
        problems=tuple(
            f"{type_}: {one.get('message') or one.get('reason') or ''}"
            for type_, one in conditions_in(subscription).items()
            if one.get("status") == "True"
        ),
        entries=len(spec.get("config") or ()),
    )


class WaitingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """An InstallPlan that waits for an approval."""

    name: str
    uid: str
    version: str
    csv: str
    replaces: str


def waiting_plan(plan: Object | None) -> WaitingPlan | None:
    """The plan if it waits for an approval. Pure."""
    spec = (plan or {}).get("spec") or {}
    if plan is None or spec.get("approved"):
        return None
    return WaitingPlan(
        name=plan["metadata"]["name"],
        uid=plan["metadata"]["uid"],
        version=plan["metadata"]["resourceVersion"],
        csv=", ".join(map(str, spec.get("clusterServiceVersionNames") or ())),
        replaces=str(spec.get("replaces") or ""),
    )


def shown_entries(subscription: Object, rendering: Object | None) -> list[Object]:
    """The config entries, with the Deployments that each applies to. Pure."""
    found = []
    for index, entry in enumerate((subscription.get("spec") or {}).get("config") or ()):
        matches = [
            one["deployment"]["metadata"]["name"]
            for one in (rendering or {}).get("deployments") or ()
            if index in one["entries"]
        ]
        fields = [name for name in entry if name not in ("selector", "deployments")]
        found.append(
            {
                "source": f"config[{index}]",
                "selector": entry.get("selector") or {},
                "names": entry.get("deployments") or [],
                "fields": fields,
                "matches": matches,
            }
        )
    return found


def origins(rendering: Object | None) -> list[tuple[str, list[Object]]]:
    """For each Deployment the fields that do not come from its version, then those that do."""
    return [
        (
            one["deployment"]["metadata"]["name"],
            sorted(one["origins"], key=lambda origin: origin["source"] == "CSV"),
        )
        for one in (rendering or {}).get("deployments") or ()
    ]


def shown_value(value: Any) -> str:
    """A value in one line."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 300 else f"{text[:300]}…"


def routes() -> list[web.RouteDef]:
    """The routes of subscriptions."""
    at = f"/subscriptions/{{namespace:{NAME}}}/{{name:{NAME}}}"
    return [
        *live_routes("/subscriptions", _list_page),
        *live_routes(at, _page),
        web.post(at, _approve),
    ]


async def _list_page(request: web.Request) -> LivePage:
    console, account = request.app[CONSOLE], request[SESSION].account

    async def fragments() -> Fragments:
        cache = await account.objects(ALL)
        rows = sorted(
            map(subscription_row, cache.list()),
            key=lambda one: (not one.problems, one.namespace, one.name),
        )
        return {
            "subscriptions": fragment(
                console.templates, "_subscriptions.html", rows=rows, missing=cache.missing
            ),
            **(await navigation_fragment(console, account)),
        }

    return LivePage(
        path="/subscriptions",
        title="Subscriptions",
        template="subscriptions.html",
        selections=(OPERATORS, ALL),
        fragments=fragments,
        kubectl=("kubectl get subscriptions --all-namespaces", "quarterdeck subscription list"),
    )


def _key(request: web.Request) -> Key:
    return Key(request.match_info["namespace"], request.match_info["name"])


async def _page(request: web.Request) -> LivePage:
    console, account, key = request.app[CONSOLE], request[SESSION].account, _key(request)
    if (await account.objects(ALL)).get(key) is None:
        raise web.HTTPNotFound(text=f"There is no Subscription {key}.")

    async def extra() -> Mapping[str, Any]:
        found = (await account.objects(ALL)).get(key)
        reference = ((found or {}).get("status") or {}).get("installPlanRef") or {}
        plan = None
        if reference.get("name"):
            plan = await account.find(PLANS, reference["name"], key.namespace)
        approve = Action(verb="patch", resource=PLANS, namespace=key.namespace)
        return {
            "key": key,
            "plan": waiting_plan(plan),
            "may": await rights(account, approve=approve),
        }

    within = {"namespace": key.namespace}
    return LivePage(
        path=quoted("subscriptions", key.namespace, key.name),
        title=key.name,
        template="subscription.html",
        selections=(
            OPERATORS,
            ALL,
            Selected(resource=PLANS, **within),
            Selected(resource=VERSIONS, **within),
        ),
        fragments=lambda: _fragments(console, account, key),
        extra=extra,
        kubectl=(
            f"kubectl get subscription {key.name} --namespace {key.namespace} -o yaml",
            f"quarterdeck subscription approve {key.name} --namespace {key.namespace}",
        ),
    )


async def _fragments(console: Console, account: Account, key: Key) -> Fragments:
    found = (await account.objects(ALL)).get(key)
    rendering, why = await _rendering(console, account, key)
    made = console.templates
    row = subscription_row(found) if found else None
    return {
        "subscription-head": fragment(made, "_subscription_head.html", key=key, row=row),
        "subscription": fragment(
            made,
            "_subscription.html",
            row=row,
            entries=shown_entries(found or {}, rendering),
            origins=origins(rendering),
            faults=(rendering or {}).get("faults") or [],
            why=why,
            shown_value=shown_value,
        ),
        **(await navigation_fragment(console, account)),
    }


async def _rendering(console: Console, account: Account, key: Key) -> tuple[Object | None, str]:
    """The Deployments with their origins, or why they cannot be shown."""
    try:
        found = await console.sources.subscription(account.client, key.namespace, key.name)
    except (KubeError, Unreadable) as error:
        return None, str(error)
    why = found.get("why") or ""
    return (None, str(why)) if why else (found, "")


async def _approve(request: web.Request) -> web.StreamResponse:
    session, key = request[SESSION], _key(request)
    form = await form_of(request)
    plan, uid, version = (form.get(name, "") for name in ("plan", "uid", "version"))
    subscription = await session.account.client.get(SUBSCRIPTIONS.plain, key.name, key.namespace)
    reference = (subscription.get("status") or {}).get("installPlanRef") or {}
    if not plan or plan != reference.get("name") or not is_resource_version(version) or not uid:
        raise BadForm(
            409, "the Subscription waits for another InstallPlan now; load the page again"
        )
    # With the version that was shown: what is approved is what was seen.
    patch = {"metadata": {"uid": uid, "resourceVersion": version}, "spec": {"approved": True}}
    await session.account.client.patch(
        PLANS, plan, patch, key.namespace, field_manager=FIELD_MANAGER
    )
    session.say(f"The InstallPlan {plan} is approved.")
    return see(quoted("subscriptions", key.namespace, key.name))
