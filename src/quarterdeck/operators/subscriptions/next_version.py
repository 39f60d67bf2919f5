"""What the update of a Subscription changes, and what of its config it breaks, before it happens.

The InstallPlan names the next version, and the catalog has it. A catalog in a ConfigMap is read as
the one who asks; one in a directory only the operator can read.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from quarterdeck.api.meta import CONFIG_MAPS, Object
from quarterdeck.api.operators_v1alpha1 import (
    CATALOG_SOURCES,
    INSTALL_PLANS,
    SUBSCRIPTIONS,
    ClusterServiceVersion,
    InstallPlan,
    Subscription,
)
from quarterdeck.kube import Client, Forbidden, NotFound
from quarterdeck.operators.subscriptions.catalog.files import TextFile, config_map_files
from quarterdeck.operators.subscriptions.catalog.installable import NotInstallable, installable
from quarterdeck.operators.subscriptions.catalog.load import load
from quarterdeck.operators.subscriptions.catalog.model import CatalogFinding
from quarterdeck.operators.subscriptions.inspect import installed_version
from quarterdeck.operators.subscriptions.install.desired import named_deployments
from quarterdeck.operators.subscriptions.render import CannotRender, Rendering, rendered
from quarterdeck.operators.subscriptions.subscription_status import upgrade_warnings

MAX_CATALOG = 8 << 20
"""The most bytes of a catalog that are read for this: it is read by whoever looks."""
Kind = Literal["changed", "added", "removed"]


class FieldChange(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a Deployment before and after an update; None if it does not exist."""

    field: str
    before: Any = None
    after: Any = None


class DeploymentChange(msgspec.Struct, frozen=True, kw_only=True):
    """What an update does to one Deployment."""

    deployment: str
    kind: Kind
    fields: tuple[FieldChange, ...] = ()


class NextVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The version that an InstallPlan installs, compared with the installed one."""

    csv: str
    installed: str
    breaks: tuple[str, ...]
    """What of the config applies now and would no longer apply."""
    deployments: tuple[DeploymentChange, ...]


async def next_version(client: Client, namespace: str, name: str) -> NextVersion:
    """What the InstallPlan of a Subscription would change; `CannotRender` if it is not known."""
    subscription = await client.get(SUBSCRIPTIONS, name, namespace)
    plan = await _plan(client, subscription)
    installed = await installed_version(client, subscription)
    following = await _version(client, subscription, plan)
    config = subscription.spec.config
    before, after = (
        rendered(subscription, csv, installed.proxy, installed.target)
        for csv in (installed.csv, following)
    )
    now, then = (named_deployments(csv) for csv in (installed.csv, following))
    return NextVersion(
        csv=following.metadata.name,
        installed=installed.csv.metadata.name,
        breaks=tuple(upgrade_warnings(config, now, then)),
        deployments=tuple(deployment_changes(before, after)),
    )


def deployment_changes(before: Rendering, after: Rendering) -> Iterator[DeploymentChange]:
    """The Deployments that differ between two versions, with their fields. Pure."""
    old, new = (
        {
            one.deployment["metadata"]["name"]: {
                origin.field: origin.value for origin in one.origins if not origin.removed
            }
            for one in rendering.deployments
        }
        for rendering in (before, after)
    )
    for name in sorted({*old, *new}):
        if name not in new:
            yield DeploymentChange(deployment=name, kind="removed")
        elif name not in old:
            yield DeploymentChange(deployment=name, kind="added")
        elif fields := tuple(_field_changes(old[name], new[name])):
            yield DeploymentChange(deployment=name, kind="changed", fields=fields)


def _field_changes(before: Object, after: Object) -> Iterator[FieldChange]:
    for field in dict.fromkeys((*before, *after)):
        old, new = before.get(field), after.get(field)
        if old != new:
            yield FieldChange(field=field, before=old, after=new)


async def _plan(client: Client, subscription: Subscription) -> InstallPlan:
    reference = subscription.status.install_plan_ref
    if reference is None or not reference.name:
        raise CannotRender("there is no InstallPlan")
    plan = await client.find(INSTALL_PLANS, reference.name, subscription.metadata.namespace)
    if plan is None:
        raise CannotRender("there is no InstallPlan")
    if plan.status.phase == "Complete":
        raise CannotRender("no update waits")
    return plan


async def _version(
    client: Client, subscription: Subscription, plan: InstallPlan
) -> ClusterServiceVersion:
    """The version of the InstallPlan, from the catalog."""
    wanted = next(iter(plan.spec.cluster_service_version_names), "")
    namespace, source = plan.spec.source_namespace or "", plan.spec.source or ""
    if not namespace or not source:
        raise CannotRender(f"the InstallPlan does not say which catalog has {wanted}")
    try:
        found = await client.get(CATALOG_SOURCES, source, namespace)
        if found.spec.source_type not in ("configmap", "internal"):
            raise CannotRender(
                f"the catalog {source} is a {found.spec.source_type}, which only the operator reads"
            )
        catalog = await client.get(CONFIG_MAPS, found.spec.config_map or "-", namespace)
    except (NotFound, Forbidden) as error:
        raise CannotRender(f"the catalog {namespace}/{source} cannot be read: {error}") from None
    # In a thread, because it takes a while; whoever waits for others' pages goes on.
    csv = await asyncio.to_thread(
        version_in, catalog, subscription.spec.package_name, wanted, plan.spec.bundle_digest
    )
    if isinstance(csv, str):
        raise CannotRender(csv)
    return csv


def version_in(
    catalog: Object, package: str, name: str, digest: str | None
) -> ClusterServiceVersion | str:
    """The version of a package in the ConfigMap of a catalog; text says why there is none. Pure."""
    loaded = load(_limited(config_map_files(catalog)))
    if loaded.errors:
        return f"the catalog cannot be used: {loaded.errors[0]}"
    found = loaded.catalog.packages.get(package)
    bundle = found.bundles.get(name) if found else None
    if bundle is None:
        return f"the catalog has no version {name} any more"
    if digest and bundle.digest != digest:
        return f"the catalog has another {name} than the InstallPlan"
    content = installable(bundle)
    if isinstance(content, NotInstallable):
        return f"{name} cannot be installed here: {content.why}"
    return content.typed


def _limited(files: Iterable[TextFile | CatalogFinding]) -> Iterator[TextFile | CatalogFinding]:
    """The files up to the limit."""
    left = MAX_CATALOG
    for one in files:
        left -= 0 if isinstance(one, CatalogFinding) else len(one[1])
        if left < 0:
            why = f"the catalog has more than {MAX_CATALOG >> 20} MiB"
            yield CatalogFinding(
                file="", entry="", message=why, remedy="look at it with the command line"
            )
            return
        yield one
