"""Checks the entries of a catalog against each other. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from quarterdeck.operators.subscriptions.catalog.channels import chain_of
from quarterdeck.operators.subscriptions.catalog.model import (
    Bundle,
    Catalog,
    CatalogFinding,
    Channel,
    Package,
    describe,
)


def lint(catalog: Catalog) -> Iterator[CatalogFinding]:
    """What is wrong with the catalog."""
    for package in catalog.packages.values():
        if package.default_channel not in package.channels:
            message = f"the default channel {package.default_channel!r} does not exist"
            known = ", ".join(sorted(package.channels)) or "none"
            yield package.place.finding(message, f"name one of its channels: {known}")
        for channel in package.channels.values():
            yield from _channel_findings(package, channel)
        yield from _bundle_findings(package)


def _channel_findings(package: Package, channel: Channel) -> Iterator[CatalogFinding]:
    place, names = channel.place, [entry.name for entry in channel.entries]
    if not names:
        yield place.finding("has no entries", "add one, or remove the channel")
        return
    for name in sorted(name for name, count in Counter(names).items() if count > 1):
        yield place.finding(f"has the entry {name} twice", "remove one of the two")
    for name in names:
        if name not in package.bundles:
            yield place.finding(f"the entry {name} has no bundle", "add its olm.bundle")
    yield from _range_findings(package, channel)
    chain = chain_of(channel)
    if not chain.heads:
        yield place.finding("every entry is replaced by another one", "break the cycle")
        return
    if len(chain.heads) > 1:
        heads = ", ".join(entry.name for entry in chain.heads)
        yield place.finding(f"has several heads: {heads}", "let one replace or skip the others")
        return
    if chain.cycle:
        yield place.finding("its entries replace each other in a cycle", "break the cycle")
        return
    reached = {entry.name for entry in chain.entries}
    skipped = {name for entry in channel.entries for name in entry.skips}
    known = reached | skipped
    for name in names:
        if name not in known:
            message = f"the entry {name} is not reached from the head {chain.heads[0].name}"
            yield place.finding(message, "let a later entry replace or skip it")


def _range_findings(package: Package, channel: Channel) -> Iterator[CatalogFinding]:
    """Ranges that hold the version of their own entry, the next one, or the latest one."""
    known = {
        entry.name: package.bundles[entry.name].version
        for entry in channel.entries
        if entry.name in package.bundles
    }
    versions = sorted(set(known.values()))
    for entry in channel.entries:
        own = known.get(entry.name)
        if own is None or entry.skip_range is None:
            continue
        at = bisect_left(versions, own)
        for version in dict.fromkeys((*versions[at : at + 2], versions[-1])):
            if version in entry.skip_range:
                message = f"the skipRange of {entry.name} holds {describe(version)}"
                remedy = f"end it below its own version, with <{describe(own)}"
                yield channel.place.finding(message, remedy, error=False)
                break


def _bundle_findings(package: Package) -> Iterator[CatalogFinding]:
    versions: dict[str, Bundle] = {}
    listed = {entry.name for channel in package.channels.values() for entry in channel.entries}
    for bundle in package.bundles.values():
        version = describe(bundle.version)
        if (other := versions.get(version)) is not None:
            message = f"has the version {version}, as {other.name} has"
            yield bundle.place.finding(message, "give each bundle its own version")
        versions[version] = bundle
        if bundle.name not in listed:
            message = "is in no channel"
            yield bundle.place.finding(message, "add it to a channel", error=False)
