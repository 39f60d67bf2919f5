"""All variants of clusters for a payload, and which of them include each manifest.

A variant has a profile, a feature set, and whether unknown gates are on. The variants of a manifest
are the bits of a number, so that comparing thousands is cheap.
"""

from collections.abc import Iterator

import msgspec

from quarterdeck.feature_gates import FEATURE_SETS
from quarterdeck.payload import annotations as known
from quarterdeck.payload.filters import (
    excluded_by,
    has_major_versions,
)
from quarterdeck.payload.gates import gate_states
from quarterdeck.payload.model import Manifest, Payload
from quarterdeck.payload.observed import PROFILES, ObservedCluster

_PREFIXES = (known.INCLUDE, known.EXCLUDE, "release.openshift.io/", "capability.openshift.io/")


class ClusterVariant(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of a cluster."""

    profile: str
    feature_set: str
    unknown_gates: bool
    """Whether gates that neither the release nor the payload knows are assumed to be on."""
    observed: ObservedCluster


class ClusterVariants:
    """The variants of clusters for a payload."""

    def __init__(self, payload: Payload) -> None:
        self.all = tuple(_variants(payload))
        self._memory: dict[tuple[object, ...], int] = {}

    def of(self, manifest: Manifest) -> int:
        """The variants that include the manifest, one bit each."""
        key = (
            has_major_versions(manifest),
            *((k, repr(v)) for k, v in manifest.annotations.items() if k.startswith(_PREFIXES)),
        )
        if key not in self._memory:
            self._memory[key] = sum(
                1 << bit
                for bit, variant in enumerate(self.all)
                if excluded_by(manifest, variant.observed) is None
            )
        return self._memory[key]

    def where(self, **fields: str) -> int:
        """The variants with these values, one bit each."""
        return sum(
            1 << bit
            for bit, variant in enumerate(self.all)
            if all(getattr(variant, name) == value for name, value in fields.items())
        )

    def describe(self, bits: int) -> str:
        """The profiles and feature sets of these variants, as text."""
        chosen = [variant for bit, variant in enumerate(self.all) if bits >> bit & 1]
        by_sets: dict[str, list[str]] = {}
        for profile in dict.fromkeys(variant.profile for variant in chosen):
            sets = dict.fromkeys(w.feature_set for w in chosen if w.profile == profile)
            text = "all feature sets" if len(sets) == len(FEATURE_SETS) else ", ".join(sets)
            by_sets.setdefault(text, []).append(profile)
        text = "; ".join(f"{', '.join(profiles)}: {sets}" for sets, profiles in by_sets.items())
        only_if = chosen and all(variant.unknown_gates for variant in chosen)
        return f"{text} (if unknown gates are on)" if only_if else text


def gates_in_annotations(payload: Payload) -> frozenset[str]:
    """Every gate in an annotation of a manifest."""
    return frozenset(
        gate
        for manifest in payload.manifests
        if (value := manifest.annotations.get(known.FEATURE_GATE)) is not None
        for gate, _ in known.gates(value)
    )


def _variants(payload: Payload) -> Iterator[ClusterVariant]:
    named = gates_in_annotations(payload)
    for profile in PROFILES:
        for feature_set in FEATURE_SETS:
            states = gate_states(payload, profile, feature_set)
            on = frozenset(gate for gate, is_on in states.items() if is_on)
            unknown = named - states.keys()
            for assumed in (False, True) if unknown else (False,):
                observed = ObservedCluster(
                    profile=profile,
                    feature_set=feature_set,
                    enabled_gates=on | unknown if assumed else on,
                )
                yield ClusterVariant(
                    profile=profile,
                    feature_set=feature_set,
                    unknown_gates=assumed,
                    observed=observed,
                )
