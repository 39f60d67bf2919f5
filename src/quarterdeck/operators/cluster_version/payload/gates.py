"""Which feature gates are on: by the release's table, and by the FeatureGates in a payload."""

from collections.abc import Iterable, Mapping
from typing import Any

from quarterdeck.operators.cluster_version.payload import annotations as known
from quarterdeck.operators.cluster_version.payload.model import Manifest, Payload
from quarterdeck.operators.cluster_version.payload.observed import DEFAULT, GATES


def gate_states(payload: Payload, profile: str, feature_set: str) -> Mapping[str, bool]:
    """Each gate that is known for the profile and feature set, with whether it is on.

    A FeatureGate in the payload wins over the release's table.
    """
    running = feature_set or DEFAULT
    states = {gate: running in sets for gate, sets in GATES.items()}
    return states | listed_gates(payload, profile, running)


def listed_gates(payload: Payload, profile: str, feature_set: str) -> dict[str, bool]:
    """Each gate that a FeatureGate in the payload lists, with whether it is on."""
    states: dict[str, bool] = {}
    for manifest in payload.manifests:
        if manifest.object["kind"] == "FeatureGate" and _is_for(manifest, profile, feature_set):
            states |= _listed(manifest)
    return states


def enabled_gates(
    payload: Payload,
    profile: str,
    feature_set: str,
    *,
    on: Iterable[str] = (),
    off: Iterable[str] = (),
) -> frozenset[str]:
    """The gates that are on, after some were turned on or off by hand."""
    states = gate_states(payload, profile, feature_set)
    return frozenset({gate for gate, is_on in states.items() if is_on} | set(on)) - set(off)


def _is_for(manifest: Manifest, profile: str, feature_set: str) -> bool:
    include = manifest.annotations.get(known.INCLUDE + profile)
    if include not in ("true", known.CONFIG_OPERATOR_ONLY):
        return False
    sets = manifest.annotations.get(known.FEATURE_SET)
    return sets is None or feature_set in known.feature_sets(sets)


def _listed(manifest: Manifest) -> dict[str, bool]:
    status = manifest.object.get("status")
    versions = status.get("featureGates") if isinstance(status, dict) else None
    states: dict[str, bool] = {}
    for version in versions if isinstance(versions, list) else []:
        if isinstance(version, dict):
            states |= dict.fromkeys(_gate_names(version.get("disabled")), False)
            states |= dict.fromkeys(_gate_names(version.get("enabled")), True)
    return states


def _gate_names(entries: Any) -> list[str]:
    if not isinstance(entries, list):
        return []
    return [e["name"] for e in entries if isinstance(e, dict) and isinstance(e.get("name"), str)]
