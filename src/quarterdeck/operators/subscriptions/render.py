"""The Deployments that a Subscription gives, without a cluster. Pure."""

from collections.abc import Mapping

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.nulls import without_nulls
from quarterdeck.api.operators_v1alpha1 import (
    ClusterServiceVersion,
    Subscription,
)
from quarterdeck.operators.subscriptions.catalog.channels import chosen_channel, first_entry
from quarterdeck.operators.subscriptions.catalog.installable import NotInstallable, installable
from quarterdeck.operators.subscriptions.catalog.model import Catalog
from quarterdeck.operators.subscriptions.config.faults import config_faults, selector_faults
from quarterdeck.operators.subscriptions.config.merge import merged
from quarterdeck.operators.subscriptions.config.origins import FieldOrigin
from quarterdeck.operators.subscriptions.groups import Target
from quarterdeck.operators.subscriptions.install.desired import named_deployments


class CannotRender(Exception):  # noqa: N818 - reads as what it is
    """Why there is nothing to render, for people."""


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """A Deployment, and where its fields come from."""

    deployment: Object
    origins: tuple[FieldOrigin, ...]
    entries: tuple[int, ...] = ()
    """The positions of the config entries that apply to it."""


class Rendering(msgspec.Struct, frozen=True, kw_only=True):
    """The Deployments of a Subscription, and what is wrong with its config."""

    csv: str
    deployments: tuple[Rendered, ...]
    faults: tuple[str, ...]


def chosen_csv(
    subscription: Subscription, catalog: Catalog, name: str | None = None
) -> ClusterServiceVersion:
    """The version of that name, or the one that the Subscription installs first."""
    package = catalog.packages.get(subscription.spec.package_name)
    if package is None:
        known = ", ".join(sorted(catalog.packages)) or "none"
        raise CannotRender(
            f"no package {subscription.spec.package_name!r} in the catalog; it has {known}"
        )
    channel = chosen_channel(package, subscription.spec.channel)
    if channel is None:
        known = ", ".join(sorted(package.channels))
        raise CannotRender(f"no channel {subscription.spec.channel!r}; the package has {known}")
    if name is None:
        entry = first_entry(channel, subscription.spec.starting_csv)
        name = entry.name if entry else subscription.spec.starting_csv or ""
    bundle = package.bundles.get(name)
    if bundle is None:
        raise CannotRender(f"no version {name!r} in the package {package.name}")
    found = installable(bundle)
    if isinstance(found, NotInstallable):
        raise CannotRender(f"{name} cannot be installed: {found.why}")
    return found.typed


def rendered(
    subscription: Subscription,
    csv: ClusterServiceVersion,
    proxy: Mapping[str, str],
    target: Target,
) -> Rendering:
    """The Deployments of the version with the Subscription's config and the proxy."""
    config = subscription.spec.config
    made: list[Rendered] = []
    faults: list[object] = list(selector_faults(config, named_deployments(csv)))
    for one in named_deployments(csv):
        result = merged(one, config, proxy, target.annotations)
        faults += config_faults(result, config)
        metadata = {
            "name": one.name,
            "namespace": target.namespace,
            **result.deployment["metadata"],
        }
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": without_nulls(result.deployment["spec"]),
        }
        made.append(Rendered(deployment=deployment, origins=result.origins, entries=result.entries))
    return Rendering(
        csv=csv.metadata.name,
        deployments=tuple(made),
        faults=tuple(dict.fromkeys(map(str, faults))),
    )
