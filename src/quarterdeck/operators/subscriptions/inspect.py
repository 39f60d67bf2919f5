"""What the commands read from a cluster and write to it: Subscriptions, and approvals."""

import msgspec

from quarterdeck.api.config_v1 import PROXIES
from quarterdeck.api.meta import DEPLOYMENTS, NAMESPACES
from quarterdeck.api.operators_v1 import OPERATOR_GROUPS
from quarterdeck.api.operators_v1alpha1 import (
    CLUSTER_SERVICE_VERSIONS,
    INSTALL_PLANS,
    SUBSCRIPTIONS,
    UPGRADE_WARNING,
    ClusterServiceVersion,
    Subscription,
)
from quarterdeck.kube import Client, differences
from quarterdeck.operators.subscriptions.config.merge import merged
from quarterdeck.operators.subscriptions.config.proxy import proxy_variables
from quarterdeck.operators.subscriptions.groups import GroupFault, Target, target_of
from quarterdeck.operators.subscriptions.install.applied import APPLIED
from quarterdeck.operators.subscriptions.install.desired import (
    desired_deployment,
    named_deployments,
)
from quarterdeck.operators.subscriptions.install.targets import accounts_of
from quarterdeck.operators.subscriptions.render import CannotRender, Rendering, rendered
from quarterdeck.operators.subscriptions.resolve import current_csv
from quarterdeck.status import find_condition

FIELD_MANAGER = "quarterdeck-subscriptions"


class SubscriptionView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A Subscription for people."""

    namespace: str
    name: str
    package: str
    channel: str
    installed: str
    state: str
    problems: tuple[str, ...]


class Approval(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What was approved."""

    plan: str
    csv: str
    warning: str
    was_approved: bool


class DeploymentDifference(msgspec.Struct, frozen=True, kw_only=True):
    """How a Deployment of the cluster differs from the rendered one."""

    deployment: str
    missing: bool
    fields: tuple[str, ...]
    """The fields that would change."""


async def views(client: Client, namespace: str) -> list[SubscriptionView]:
    """The Subscriptions of a namespace, or of all if it is empty."""
    found = await client.list(SUBSCRIPTIONS, namespace)
    return [_view(one) for one in found.items]


def _view(subscription: Subscription) -> SubscriptionView:
    status = subscription.status
    return SubscriptionView(
        namespace=subscription.metadata.namespace,
        name=subscription.metadata.name,
        package=subscription.spec.package_name,
        channel=subscription.spec.channel or "",
        installed=status.installed_csv or "",
        state=status.state or "",
        problems=tuple(
            f"{one.type}: {one.message}" for one in status.conditions if one.status == "True"
        ),
    )


async def approve(client: Client, namespace: str, name: str) -> Approval:
    """Approve the InstallPlan that the Subscription waits for."""
    subscription = await client.get(SUBSCRIPTIONS, name, namespace)
    reference = subscription.status.install_plan_ref
    if reference is None or not reference.name:
        raise CannotRender(f"the Subscription {name} has no InstallPlan")
    plan = await client.get(INSTALL_PLANS, reference.name, namespace)
    warning = find_condition(subscription.status.conditions, UPGRADE_WARNING)
    if not plan.spec.approved:
        # With the version that was read: what is approved is what was shown.
        meta = {"uid": plan.metadata.uid, "resourceVersion": plan.metadata.resource_version}
        await client.patch(
            INSTALL_PLANS,
            plan.metadata.name,
            {"metadata": meta, "spec": {"approved": True}},
            namespace,
        )
    return Approval(
        plan=plan.metadata.name,
        csv=next(iter(plan.spec.cluster_service_version_names), ""),
        warning=warning.message if warning else "",
        was_approved=plan.spec.approved,
    )


async def installed_rendering(client: Client, namespace: str, name: str) -> Rendering:
    """The Deployments of the installed version, with the origin of each field."""
    subscription = await client.get(SUBSCRIPTIONS, name, namespace)
    installed = await installed_version(client, subscription)
    return rendered(subscription, installed.csv, installed.proxy, installed.target)


class InstalledVersion(msgspec.Struct, frozen=True, kw_only=True):
    """What the Deployments of a Subscription follow from."""

    csv: ClusterServiceVersion
    target: Target
    proxy: dict[str, str]


async def installed_version(client: Client, subscription: Subscription) -> InstalledVersion:
    """The installed version with its target and proxy; `CannotRender` if nothing is installed."""
    namespace = subscription.metadata.namespace
    csvs = (await client.list(CLUSTER_SERVICE_VERSIONS, namespace)).items
    csv = current_csv(subscription, csvs)
    if csv is None:
        raise CannotRender(f"the Subscription {subscription.metadata.name} has nothing installed")
    groups = (await client.list(OPERATOR_GROUPS, namespace)).items
    labels = {
        one["metadata"]["name"]: one["metadata"].get("labels") or {}
        for one in (await client.list(NAMESPACES)).items
    }
    plans = (await client.list(INSTALL_PLANS, namespace)).items
    target = target_of(namespace, groups, labels, accounts_of(csvs, plans))
    if isinstance(target, GroupFault):
        raise CannotRender(target.message)
    live = await client.find(PROXIES, "cluster")
    proxy = dict(proxy_variables(live)) if live is not None else {}
    return InstalledVersion(csv=csv, target=target, proxy=proxy)


async def difference(client: Client, subscription: Subscription) -> list[DeploymentDifference]:
    """How the Deployments of the cluster differ from what this Subscription gives.

    The version is the one that is installed.
    """
    namespace = subscription.metadata.namespace
    installed = await installed_version(client, subscription)
    found = []
    for one in named_deployments(installed.csv):
        result = merged(
            one, subscription.spec.config, installed.proxy, installed.target.annotations
        )
        desired = desired_deployment(installed.csv, result)
        live = await client.find(DEPLOYMENTS, one.name, namespace)
        if live is None:
            found.append(DeploymentDifference(deployment=one.name, missing=True, fields=()))
            continue
        changed, left = differences(live, desired, FIELD_MANAGER)
        # The record follows from the rest.
        shown = [one for one in map(str, (*changed, *left)) if APPLIED not in one]
        fields = tuple(dict.fromkeys(shown))
        found.append(DeploymentDifference(deployment=one.name, missing=False, fields=fields))
    return found
