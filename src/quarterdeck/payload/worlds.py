"""Every kind of cluster that a payload may meet, and in which of them each manifest counts.

A world is a profile, a feature set, and what to think of gates of which nobody says whether they
are on. The worlds of a manifest are the bits of a number, so that comparing thousands is cheap.
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


class World(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of cluster."""

    profile: str
    feature_set: str
    unknown_gates: bool
    """Whether gates are thought to be on that neither the release nor the payload knows."""
    observed: ObservedCluster


class Worlds:
    """The worlds of a payload, and the manifests' places in them."""

    def __init__(self, payload: Payload) -> None:
        self.all = tuple(_worlds(payload))
        self._memory: dict[tuple[object, ...], int] = {}

    def of(self, manifest: Manifest) -> int:
        """The worlds in which the manifest counts, one bit each."""
        key = (
            has_major_versions(manifest),
            *((k, repr(v)) for k, v in manifest.annotations.items() if k.startswith(_PREFIXES)),
        )
        if key not in self._memory:
            self._memory[key] = sum(
                1 << bit
                for bit, world in enumerate(self.all)
                if excluded_by(manifest, world.observed) is None
            )
        return self._memory[key]

    def where(self, **fields: str) -> int:
        """The worlds with these values, one bit each."""
        return sum(
            1 << bit
            for bit, world in enumerate(self.all)
            if all(getattr(world, name) == value for name, value in fields.items())
        )

    def describe(self, bits: int) -> str:
        """Profiles and feature sets, for people."""
        chosen = [world for bit, world in enumerate(self.all) if bits >> bit & 1]
        by_sets: dict[str, list[str]] = {}
        for profile in dict.fromkeys(world.profile for world in chosen):
            sets = dict.fromkeys(w.feature_set for w in chosen if w.profile == profile)
            text = "all feature sets" if len(sets) == len(FEATURE_SETS) else ", ".join(sets)
            by_sets.setdefault(text, []).append(profile)
        text = "; ".join(f"{', '.join(profiles)}: {sets}" for sets, profiles in by_sets.items())
        only_if = chosen and all(world.unknown_gates for world in chosen)
        return f"{text} (if unknown gates are on)" if only_if else text


def gates_in_annotations(payload: Payload) -> frozenset[str]:
    """Every gate that a manifest asks for."""
    return frozenset(
        gate
        for manifest in payload.manifests
        if (value := manifest.annotations.get(known.FEATURE_GATE)) is not None
        for gate, _ in known.gates(value)
    )


def _worlds(payload: Payload) -> Iterator[World]:
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
                yield World(
                    profile=profile,
                    feature_set=feature_set,
                    unknown_gates=assumed,
                    observed=observed,
                )
