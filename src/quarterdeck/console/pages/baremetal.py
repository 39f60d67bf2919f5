"""Bare metal: who manages metal3, since when, and what is wrong with the Provisioning."""

from datetime import datetime

import msgspec
from aiohttp import web

from quarterdeck.api.config_v1 import INFRASTRUCTURES
from quarterdeck.api.meta import DEPLOYMENTS, Object
from quarterdeck.api.metal3_v1alpha1 import PROVISIONINGS
from quarterdeck.api.times import parse_time
from quarterdeck.console.account import ConsoleAccount, Selected, Unreadable
from quarterdeck.console.feed import Fragments
from quarterdeck.console.pages.live import live_routes
from quarterdeck.console.pages.overview import row_of
from quarterdeck.console.pages.page import (
    OPERATORS,
    LivePage,
    judged_operators,
    navigation_fragment,
)
from quarterdeck.console.render import fragment
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.kube import KubeError
from quarterdeck.metal3.inspect import OPERATOR_DEPLOYMENTS, HandoverStatus, handover_status
from quarterdeck.metal3.names import DEPLOYMENT_KEY, NAMESPACE
from quarterdeck.metal3.validation import faults

CONFIGURATIONS = Selected(resource=PROVISIONINGS)
DEPLOYMENT = Selected(resource=DEPLOYMENTS, namespace=NAMESPACE)
PLATFORM = Selected(resource=INFRASTRUCTURES.plain, name="cluster")


def applied_at(deployment: Object | None) -> datetime | None:
    """When an operator last changed the Deployment's fields. Pure."""
    entries = ((deployment or {}).get("metadata") or {}).get("managedFields") or ()
    times = [
        found
        for one in entries
        if not one.get("subresource") and (found := parse_time(one.get("time")))
    ]
    return max(times, default=None)


def routes() -> list[web.RouteDef]:
    """The routes of bare metal."""
    return live_routes("/baremetal", _page)


async def _page(request: web.Request) -> LivePage:
    console, account = request.app[CONSOLE], request[SESSION].account
    return LivePage(
        path="/baremetal",
        title="Bare metal",
        template="baremetal.html",
        selections=(OPERATORS, CONFIGURATIONS, DEPLOYMENT, PLATFORM),
        fragments=lambda: _fragments(console, account),
        kubectl=(
            "quarterdeck handover status",
            f"kubectl get deployment metal3 --namespace {NAMESPACE} -o yaml",
            "kubectl get provisioning provisioning-configuration -o yaml",
        ),
    )


async def _fragments(console: Console, account: ConsoleAccount) -> Fragments:
    status: HandoverStatus | None = None
    why = ""
    try:
        status = await handover_status(account.client)
    except KubeError as error:
        why = str(error)
    live = await account.find(DEPLOYMENTS, DEPLOYMENT_KEY.name, DEPLOYMENT_KEY.namespace)
    operators = [
        row_of(one, None)
        for one in await judged_operators(console, account)
        if one.name in OPERATOR_DEPLOYMENTS
    ]
    try:
        configurations = (await account.objects(CONFIGURATIONS)).list()
        unread = ""
    except Unreadable as error:
        configurations, unread = [], str(error)
    return {
        "metal": fragment(
            console.templates,
            "_metal.html",
            status=status,
            why=why,
            since=applied_at(live),
            operators=operators,
            configurations=[
                (
                    one.metadata.name,
                    {
                        name: str(value)
                        for name, value in msgspec.to_builtins(one.spec).items()
                        if value is not None
                    },
                    [str(fault) for fault in faults(one.spec)],
                )
                for one in configurations
            ],
            unread=unread,
        ),
        **(await navigation_fragment(console, account)),
    }
