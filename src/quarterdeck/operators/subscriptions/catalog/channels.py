"""The order of the versions in a channel, and the next version after the installed one. Pure."""

from collections.abc import Mapping

import msgspec

from quarterdeck.operators.subscriptions.catalog.model import (
    Bundle,
    Channel,
    ChannelEntry,
    Package,
)
from quarterdeck.versions import Version


class Chain(msgspec.Struct, frozen=True):
    """A channel in its order, from the head down."""

    heads: tuple[ChannelEntry, ...]
    """The entries that no other entry replaces or skips; a valid channel has one."""
    entries: tuple[ChannelEntry, ...]
    """The head, the entry that it replaces, and so on."""
    cycle: bool
    """Whether an entry replaces itself, by way of others."""


def chain_of(channel: Channel) -> Chain:
    """The order of a channel."""
    by_name = {entry.name: entry for entry in channel.entries}
    behind = {entry.replaces for entry in channel.entries}
    behind |= {name for entry in channel.entries for name in entry.skips}
    heads = tuple(entry for entry in channel.entries if entry.name not in behind)
    entries: list[ChannelEntry] = []
    seen: set[str] = set()
    here = heads[0] if heads else None
    while here is not None and here.name not in seen:
        seen.add(here.name)
        entries.append(here)
        here = by_name.get(here.replaces)
    return Chain(heads, tuple(entries), cycle=here is not None)


def next_entry(
    channel: Channel, installed: str, version: Version | None, bundles: Mapping[str, Bundle]
) -> ChannelEntry | None:
    """The update of the installed version that is nearest to the head; None if there is none.

    Only entries above the installed one count, so that no range leads back. A version outside the
    chain has no place in it: a range leads from it to higher versions only.
    """
    chain = chain_of(channel).entries
    inside = any(entry.name == installed for entry in chain)
    for entry in chain:
        if entry.name == installed:
            return None
        if entry.replaces == installed or installed in entry.skips:
            return entry
        if version is None or entry.skip_range is None or version not in entry.skip_range:
            continue
        bundle = bundles.get(entry.name)
        if inside or (bundle is not None and bundle.version > version):
            return entry
    return None


def first_entry(channel: Channel, starting: str | None) -> ChannelEntry | None:
    """The version to install first: the starting one, or the head."""
    chain = chain_of(channel).entries
    if starting:
        return next((entry for entry in channel.entries if entry.name == starting), None)
    return chain[0] if chain else None


def is_head(channel: Channel, name: str) -> bool:
    """Whether this is the latest version of the channel."""
    return chain_of(channel).entries[:1] == tuple(
        entry for entry in channel.entries if entry.name == name
    )


def chosen_channel(package: Package, name: str | None) -> Channel | None:
    """The channel of that name, or the default channel."""
    return package.channels.get(name or package.default_channel)
