"""Decides which manifests a cluster includes: nine filters, each may give a reason to exclude one.

The first reason excludes a manifest; the others are also evaluated, because a user who removes the
first needs the next.
"""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec

from quarterdeck.feature_gates import DEFAULT, FEATURE_SETS
from quarterdeck.payload import annotations as known
from quarterdeck.payload.model import Manifest
from quarterdeck.payload.observed import ObservedCluster

Filter: TypeAlias = Callable[[Manifest, ObservedCluster], str | None]
"""Returns the reason why a manifest is excluded; None if this filter does not exclude it."""


class FilterResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one filter for a manifest."""

    number: int
    filter: str
    reason: str | None
    """Why the filter excludes the manifest; None if it does not."""


def no_annotations(manifest: Manifest, _observed: ObservedCluster) -> str | None:
    """A manifest without annotations belongs to no profile."""
    return None if manifest.annotations else "there are no annotations"


def excluded(manifest: Manifest, observed: ObservedCluster) -> str | None:
    """A manifest can exclude clusters and profiles."""
    for identifier in (observed.cluster_id, observed.profile):
        if identifier and manifest.annotations.get(known.EXCLUDE + identifier) == "true":
            return f'{known.EXCLUDE}{identifier} is "true"'
    return None


def set_and_gate(manifest: Manifest, _observed: ObservedCluster) -> str | None:
    """A manifest cannot have both a feature set and a feature gate."""
    if known.FEATURE_SET in manifest.annotations and known.FEATURE_GATE in manifest.annotations:
        return f"both {known.FEATURE_SET} and {known.FEATURE_GATE} are set"
    return None


def feature_set(manifest: Manifest, observed: ObservedCluster) -> str | None:
    """The cluster's feature set must be listed, and all listed sets must be known."""
    if (value := manifest.annotations.get(known.FEATURE_SET)) is None:
        return None
    listed = known.feature_sets(value)
    if unknown := [name for name in listed if name not in FEATURE_SETS]:
        return f"{known.FEATURE_SET} has the unknown {_quoted(unknown)}"
    running = observed.feature_set or DEFAULT
    return None if running in listed else f"{running} is not in {known.FEATURE_SET}: {value}"


def feature_gate(manifest: Manifest, observed: ObservedCluster) -> str | None:
    """All gates must be as listed: on, or off with a minus before the name."""
    if (value := manifest.annotations.get(known.FEATURE_GATE)) is None:
        return None
    wrong = [
        f"{gate} is {'off' if wanted else 'on'}"
        for gate, wanted in known.gates(value)
        if (gate in observed.enabled_gates) != wanted
    ]
    return f"{' and '.join(wrong)}, against {known.FEATURE_GATE}: {value}" if wrong else None


def major_version(manifest: Manifest, observed: ObservedCluster) -> str | None:
    """CRDs and FeatureGates may be for certain major versions of the release only."""
    value = manifest.annotations.get(known.MAJOR_VERSION)
    running = observed.major_version
    if value is None or running is None or not has_major_versions(manifest):
        return None
    listed = known.names(value)
    if bad := [entry for entry in listed if not entry.removeprefix("-").isdecimal()]:
        return f"{known.MAJOR_VERSION} has {_quoted(bad)}, which is no number"
    numbers = [int(entry) for entry in listed if not entry.startswith("-")]
    refused = [int(entry[1:]) for entry in listed if entry.startswith("-")]
    if running in refused or (numbers and running not in numbers):
        return f"the release is of major version {running}, against {known.MAJOR_VERSION}: {value}"
    return None


def has_major_versions(manifest: Manifest) -> bool:
    """Whether the major version filter applies to manifests of this kind."""
    return manifest.object["kind"] in ("CustomResourceDefinition", "FeatureGate")


def profile(manifest: Manifest, observed: ObservedCluster) -> str | None:
    """The cluster's profile must be included, by exactly the text "true"."""
    name = known.INCLUDE + observed.profile
    value = manifest.annotations.get(name)
    if value == "true":
        return None
    return f"{name} is not set" if value is None else f'{name} is {value!r}, not "true"'


def capability(manifest: Manifest, observed: ObservedCluster) -> str | None:
    """All capabilities must be known and enabled; an unknown one is reported first."""
    if (value := manifest.annotations.get(known.CAPABILITY)) is None:
        return None
    listed = known.names(value, "+")
    if unknown := [name for name in listed if name not in observed.known_capabilities]:
        return f"{known.CAPABILITY} has the unknown {_quoted(unknown)}"
    if disabled := [name for name in listed if name not in observed.enabled_capabilities]:
        return f"the capability {_quoted(disabled)} is disabled"
    return None


def override(manifest: Manifest, observed: ObservedCluster) -> str | None:
    """The administrator may have set the object to unmanaged."""
    for entry in observed.overrides:
        # For a cluster-scoped object the namespace of the entry is ignored: the entry must have
        # one.
        namespace = entry.namespace if manifest.identity.namespace else ""
        named = (entry.group, entry.kind, namespace, entry.name)
        if entry.unmanaged and named == manifest.identity:
            return "an entry of ClusterVersion.spec.overrides says unmanaged"
    return None


FILTERS: tuple[tuple[str, Filter], ...] = (
    ("no annotations", no_annotations),
    ("excluded", excluded),
    ("feature set and gate", set_and_gate),
    ("feature set", feature_set),
    ("feature gate", feature_gate),
    ("major version", major_version),
    ("profile", profile),
    ("capability", capability),
    ("override", override),
)
"""The filters in their order."""


def filter_results(manifest: Manifest, observed: ObservedCluster) -> tuple[FilterResult, ...]:
    """The results of the nine filters."""
    return tuple(
        FilterResult(number=number, filter=name, reason=judge(manifest, observed))
        for number, (name, judge) in enumerate(FILTERS, 1)
    )


def excluded_by(manifest: Manifest, observed: ObservedCluster) -> FilterResult | None:
    """The first filter that excludes the manifest; None if it is included."""
    for number, (name, judge) in enumerate(FILTERS, 1):
        if (reason := judge(manifest, observed)) is not None:
            return FilterResult(number=number, filter=name, reason=reason)
    return None


def included(manifests: Iterable[Manifest], observed: ObservedCluster) -> tuple[Manifest, ...]:
    """The included manifests, in the order given."""
    return tuple(m for m in manifests if excluded_by(m, observed) is None)


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(repr(value) for value in values)
