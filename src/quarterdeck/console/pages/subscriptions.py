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
    UPGRADE_WARNING,
)
from quarterdeck.console.account import ConsoleAccount, Selected, Unreadable
from quarterdeck.console.feed import Fragments
from quarterdeck.console.pages.changes import is_resource_version
from quarterdeck.console.pages.install_plans import (
    WaitingPlan,
    WaitingUpdate,
    next_version,
    upgrade_warning,
    waiting_plan,
)
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
from quarterdeck.console.pages.renderings import origins, shown_entries, shown_value
from quarterdeck.console.render import fragment
from quarterdeck.console.rights import RIGHT_LIFETIME, Action
from quarterdeck.console.security import BadForm
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.kube import KubeError

ALL = Selected(resource=SUBSCRIPTIONS.plain)
PLANS = INSTALL_PLANS.plain
VERSIONS = CLUSTER_SERVICE_VERSIONS.plain
MAX_NEXT_VERSIONS = 100


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
        approve = Action(verb="patch", resource=PLANS, namespace=key.namespace)
        return {
            "key": key,
            "plan": await _plan(account, found),
            "may": await rights(account, approve=approve),
        }

    return LivePage(
        path=quoted("subscriptions", key.namespace, key.name),
        title=key.name,
        template="subscription.html",
        selections=(
            OPERATORS,
            ALL,
            Selected(resource=PLANS, namespace=key.namespace),
            Selected(resource=VERSIONS, namespace=key.namespace),
        ),
        fragments=lambda: _fragments(console, account, key),
        extra=extra,
        kubectl=(
            f"kubectl get subscription {key.name} --namespace {key.namespace} -o yaml",
            f"quarterdeck subscription approve {key.name} --namespace {key.namespace}",
        ),
    )


async def _fragments(console: Console, account: ConsoleAccount, key: Key) -> Fragments:
    found = (await account.objects(ALL)).get(key)
    rendering, why = await _rendering(console, account, key)
    made = console.templates
    row = subscription_row(found) if found else None
    following = await _next_version(console, account, key, found)
    # What the next version breaks has a place of its own.
    problems = [
        one
        for one in (row.problems if row else ())
        if following is None or not one.startswith(f"{UPGRADE_WARNING}:")
    ]
    return {
        "subscription-head": fragment(made, "_subscription_head.html", key=key, row=row),
        "subscription-next": fragment(
            made,
            "_subscription_next.html",
            plan=await _plan(account, found),
            next=following,
            shown_value=shown_value,
        ),
        "subscription": fragment(
            made,
            "_subscription.html",
            problems=problems,
            entries=shown_entries(found or {}, rendering),
            origins=origins(rendering),
            faults=(rendering or {}).get("faults") or [],
            why=why,
            shown_value=shown_value,
        ),
        **(await navigation_fragment(console, account)),
    }


async def _plan(account: ConsoleAccount, subscription: Object | None) -> WaitingPlan | None:
    """The InstallPlan of a Subscription, if it waits for an approval."""
    reference = ((subscription or {}).get("status") or {}).get("installPlanRef") or {}
    if subscription is None or not reference.get("name"):
        return None
    namespace = subscription["metadata"]["namespace"]
    try:
        plans = await account.objects(Selected(resource=PLANS, namespace=namespace))
    except Unreadable:
        return None
    return waiting_plan(plans.get(Key(namespace, reference["name"])))


async def _next_version(
    console: Console, account: ConsoleAccount, key: Key, subscription: Object | None
) -> WaitingUpdate | None:
    """What the update that waits changes and breaks; None if none waits."""
    plan = await _plan(account, subscription)
    if plan is None or subscription is None:
        return None
    told = upgrade_warning(subscription)
    # The catalog has to be read for it: not at each change, and again before a right is outdated.
    state = (key, plan.uid, plan.version, subscription["metadata"].get("generation"))
    now = console.clock()
    known: tuple[float, WaitingUpdate] | None = account.next_versions.get(state)
    if known is not None and now - known[0] < RIGHT_LIFETIME:
        return known[1]
    async with console.comparing:
        try:
            found = await console.sources.next_version(account.client, key.namespace, key.name)
        except KubeError as error:
            found = {"why": str(error)}
    made = next_version(found, told)
    if len(account.next_versions) >= MAX_NEXT_VERSIONS:
        account.next_versions.clear()
    account.next_versions[state] = (now, made)
    return made


async def _rendering(
    console: Console, account: ConsoleAccount, key: Key
) -> tuple[Object | None, str]:
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
