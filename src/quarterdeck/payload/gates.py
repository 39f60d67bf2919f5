"""Which feature gates are on: FeatureGates in the payload win over the release's table."""

from collections.abc import Iterable
from typing import Any

from quarterdeck import feature_gates
from quarterdeck.feature_gates import DEFAULT
from quarterdeck.payload import annotations as known
from quarterdeck.payload.model import Manifest, Payload


def gate_states(
    payload: Payload,
    profile: str,
    feature_set: str,
    *,
    on: Iterable[str] = (),
    off: Iterable[str] = (),
) -> dict[str, bool]:
    """Each known gate of the profile and feature set, and whether it is on.

    `on` and `off` are gates that the user has switched.
    """
    listed = listed_gates(payload, profile, feature_set or DEFAULT)
    return feature_gates.gate_states(feature_set, listed=listed, on=on, off=off)


def listed_gates(payload: Payload, profile: str, feature_set: str) -> dict[str, bool]:
    """Each gate that a FeatureGate in the payload lists, and whether it is on."""
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
    """The gates that are on; `on` and `off` are gates that the user has switched."""
    states = gate_states(payload, profile, feature_set, on=on, off=off)
    return frozenset(gate for gate, is_on in states.items() if is_on)


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
