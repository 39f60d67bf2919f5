"""Decides what a Subscription installs next. Pure.

The installed version is the ClusterServiceVersion that names the Subscription and that no other one
replaces. The next one comes from the channel. A decision is either a failure with its reason, or
what is installed, and the bundle that comes next, if any.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from quarterdeck.api.meta import Key
from quarterdeck.api.operators_v1alpha1 import ClusterServiceVersion, Subscription
from quarterdeck.operators.subscriptions.catalog.channels import (
    chosen_channel,
    first_entry,
    is_head,
    next_entry,
)
from quarterdeck.operators.subscriptions.catalog.installable import (
    Installable,
    NotInstallable,
    installable,
)
from quarterdeck.operators.subscriptions.catalog.model import Bundle, Catalog, Channel
from quarterdeck.operators.subscriptions.names import REPLACES, SUBSCRIPTION
from quarterdeck.versions import parse_version

REQUIRED_MISSING = "RequiredPackageMissing"
APPROVALS = ("", "Automatic", "Manual")


class ObservedSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision is made from."""

    subscription: Subscription
    siblings: Sequence[Subscription]
    """The other Subscriptions of the namespace; if it has a version, those for its package."""
    csvs: Sequence[ClusterServiceVersion]
    """The ClusterServiceVersions of the Subscription; all of the namespace if it has none.

    Without those that are being deleted.
    """
    catalogs: Mapping[Key, Catalog | None]
    """The catalogs that the Subscription may use; None for one that cannot be used."""
    version_of: Callable[[str], str] = lambda _package: ""
    """Gives the version of a package that is installed in the namespace; empty if there is none."""


class ResolveFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing is installed or updated."""

    reason: str
    message: str
    unhealthy: bool = False
    """Whether the cause is the catalog."""


class InstallStep(msgspec.Struct, frozen=True, kw_only=True):
    """The bundle to install next."""

    source: Key
    bundle: Bundle
    content: Installable
    replaces: str
    """The ClusterServiceVersion that is installed now; empty at the first installation."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is installed, and what comes next."""

    current: ClusterServiceVersion | None = None
    """The ClusterServiceVersion of the Subscription that no other one replaces."""
    adopt: ClusterServiceVersion | None = None
    """A ClusterServiceVersion without a Subscription, which this one takes over."""
    step: InstallStep | None = None
    following: InstallStep | None = None
    """The step, also while it waits: somebody can approve its plan meanwhile."""
    failure: ResolveFailure | None = None
    at_head: bool = False
    waits: bool = False
    """Whether there is an update, but the installed version does not work at the moment."""


def decide(seen: ObservedSubscription) -> Decision:
    """What the Subscription installs next."""
    current = current_csv(seen.subscription, seen.csvs)
    failure = _invalid(seen) or _duplicate(seen)
    if failure is not None:
        return Decision(current=current, failure=failure)
    found = _found_catalog(seen)
    if isinstance(found, ResolveFailure):
        return Decision(current=current, failure=found)
    source, catalog = found
    package = catalog.packages[seen.subscription.spec.package_name]
    channel = chosen_channel(package, seen.subscription.spec.channel)
    if channel is None:
        known = ", ".join(sorted(package.channels))
        message = f"spec.channel: {seen.subscription.spec.channel!r}: use one of {known}"
        return Decision(
            current=current, failure=ResolveFailure(reason="ChannelNotFound", message=message)
        )
    if current is None:
        return _first(seen, source, package.bundles, channel)
    return _next(seen, current, source, package.bundles, channel)


def current_csv(
    subscription: Subscription, csvs: Sequence[ClusterServiceVersion]
) -> ClusterServiceVersion | None:
    """The ClusterServiceVersion of the Subscription that no other one replaces."""
    name = subscription.metadata.name
    own = [one for one in csvs if one.metadata.annotations.get(SUBSCRIPTION) == name]
    replaced = {one.metadata.annotations.get(REPLACES) for one in own}
    latest = [one for one in own if one.metadata.name not in replaced]
    return max(latest, key=lambda one: str(one.metadata.creation_timestamp), default=None)


def _invalid(seen: ObservedSubscription) -> ResolveFailure | None:
    approval = seen.subscription.spec.install_plan_approval or ""
    if approval in APPROVALS:
        return None
    message = f"spec.installPlanApproval: {approval!r}: use Automatic or Manual"
    return ResolveFailure(reason="InvalidSpec", message=message)


def _duplicate(seen: ObservedSubscription) -> ResolveFailure | None:
    def age(one: Subscription) -> tuple[str, str]:
        return (str(one.metadata.creation_timestamp), one.metadata.name)

    package = seen.subscription.spec.package_name
    older = [
        one.metadata.name
        for one in seen.siblings
        if one.spec.package_name == package and age(one) < age(seen.subscription)
    ]
    if not older:
        return None
    message = (
        f"the Subscription {min(older)} is for the package {package} in this namespace already; "
        "delete one of the two"
    )
    return ResolveFailure(reason="DuplicateSubscription", message=message)


def _found_catalog(seen: ObservedSubscription) -> tuple[Key, Catalog] | ResolveFailure:
    spec = seen.subscription.spec
    package = spec.package_name
    usable = {key: one for key, one in seen.catalogs.items() if one is not None}
    having = [(key, one) for key, one in sorted(usable.items()) if package in one.packages]
    if len(having) == 1:
        return having[0]
    if len(having) > 1:
        # The Subscription's own namespace has precedence over that of the operator.
        own = [one for one in having if one[0].namespace == seen.subscription.metadata.namespace]
        if len(own) == 1:
            return own[0]
        names = ", ".join(str(key) for key, _ in having)
        message = (
            f"several CatalogSources have the package {package}: {names}; name one in spec.source"
        )
        return ResolveFailure(reason="AmbiguousSource", message=message)
    broken = sorted(str(key) for key, one in seen.catalogs.items() if one is None)
    if broken:
        message = f"the CatalogSource cannot be used: {', '.join(broken)}; see its status"
        return ResolveFailure(reason="CatalogSourceUnusable", message=message, unhealthy=True)
    if not seen.catalogs:
        wanted = f"no CatalogSource {spec.source}" if spec.source else "no CatalogSource"
        where = "in this namespace or that of the operator"
        message = (
            f"there is {wanted} {where}; create it, or correct spec.source and spec.sourceNamespace"
        )
        return ResolveFailure(reason="CatalogSourceMissing", message=message, unhealthy=True)
    names = ", ".join(str(key) for key in sorted(seen.catalogs))
    message = f"no package {package} in {names}; correct spec.name"
    return ResolveFailure(reason="PackageNotFound", message=message)


def _first(
    seen: ObservedSubscription, source: Key, bundles: Mapping[str, Bundle], channel: Channel
) -> Decision:
    known = {one.metadata.name: one for one in seen.csvs}
    orphans = [known[entry.name] for entry in channel.entries if entry.name in known]
    names = {one.metadata.name for one in seen.siblings}
    for orphan in orphans:
        owner = orphan.metadata.annotations.get(SUBSCRIPTION)
        if owner in names or owner is None:
            by = f"the Subscription {owner}" if owner else "somebody else"
            message = f"the ClusterServiceVersion {orphan.metadata.name} belongs to {by}"
            return Decision(
                failure=ResolveFailure(reason="ClusterServiceVersionOwned", message=message)
            )
    if orphans:
        replaced = {one.metadata.annotations.get(REPLACES) for one in orphans}
        latest = [one for one in orphans if one.metadata.name not in replaced]
        return Decision(adopt=latest[0] if latest else orphans[0])
    entry = first_entry(channel, seen.subscription.spec.starting_csv)
    if entry is None or entry.name not in bundles:
        name = seen.subscription.spec.starting_csv
        message = f"spec.startingCSV: {name!r}: the channel {channel.name} does not have it"
        return Decision(failure=ResolveFailure(reason="StartingCSVNotFound", message=message))
    return _step(seen, None, source, bundles[entry.name])


def _next(
    seen: ObservedSubscription,
    current: ClusterServiceVersion,
    source: Key,
    bundles: Mapping[str, Bundle],
    channel: Channel,
) -> Decision:
    name = current.metadata.name
    entry = next_entry(channel, name, parse_version(current.spec.version or ""), bundles)
    if entry is None or entry.name not in bundles:
        return Decision(current=current, at_head=is_head(channel, name))
    made = _step(seen, current, source, bundles[entry.name])
    if current.status.phase != "Succeeded":
        return Decision(current=current, following=made.following, waits=True)
    return made


def _step(
    seen: ObservedSubscription, current: ClusterServiceVersion | None, source: Key, bundle: Bundle
) -> Decision:
    if missing := _missing_packages(seen, bundle):
        return Decision(current=current, failure=missing)
    content = installable(bundle)
    if isinstance(content, NotInstallable):
        message = f"{bundle.name} cannot be installed here: {content.why}"
        return Decision(
            current=current, failure=ResolveFailure(reason="NotInstallable", message=message)
        )
    replaces = current.metadata.name if current else ""
    step = InstallStep(source=source, bundle=bundle, content=content, replaces=replaces)
    return Decision(current=current, step=step, following=step)


def _missing_packages(seen: ObservedSubscription, bundle: Bundle) -> ResolveFailure | None:
    """The packages that the bundle requires, and that are not installed in the namespace."""
    missing = []
    for one in bundle.required:
        installed = parse_version(seen.version_of(one.package))
        if installed is None or installed not in one.versions:
            missing.append(str(one))
    if not missing:
        return None
    message = (
        f"{bundle.name} requires {', '.join(missing)}, which is not installed in this namespace; "
        "create a Subscription for it"
    )
    return ResolveFailure(reason=REQUIRED_MISSING, message=message)
