"""Which feature gates are on: what the release's table and the FeatureGate object make of it.

Pure. A component believes only what FeatureGate's status says for its own version.
"""

from collections.abc import Collection, Iterable, Mapping

from quarterdeck.api.config_v1 import (
    FeatureGate,
    FeatureGateDetails,
    FeatureGateSpec,
    FeatureSet,
)

FEATURE_GATE_NAME = "cluster"
"""The FeatureGate that counts."""

DEFAULT = "Default"
FEATURE_SETS = (
    DEFAULT,
    "TechPreviewNoUpgrade",
    "DevPreviewNoUpgrade",
    "CustomNoUpgrade",
    "OKD",
)
NO_UPGRADE = (
    FeatureSet.CUSTOM_NO_UPGRADE,
    FeatureSet.DEV_PREVIEW_NO_UPGRADE,
    FeatureSet.TECH_PREVIEW_NO_UPGRADE,
)
"""Feature sets that cannot be left again, and that hold minor updates back."""

LOG_LEVEL_GATE = "ClusterVersionOperatorConfiguration"
GATES: Mapping[str, frozenset[str]] = {LOG_LEVEL_GATE: frozenset(FEATURE_SETS)}
"""The gates of this release: name to the feature sets in which it is on."""


def gate_is_on(gates: FeatureGate | None, version: str, gate: str) -> bool:
    """Whether a gate is on for a version; off where nobody has said so for that very version."""
    entry = entry_for(gates, version)
    return entry is not None and any(one.name == gate for one in entry.enabled)


def entry_for(gates: FeatureGate | None, version: str) -> FeatureGateDetails | None:
    """What the gates are for a version; None where nobody has said."""
    entries = gates.status.feature_gates if gates else ()
    return next((entry for entry in entries if entry.version == version), None)


def gate_states(
    feature_set: str,
    *,
    listed: Mapping[str, bool] | None = None,
    on: Iterable[str] = (),
    off: Iterable[str] = (),
    table: Mapping[str, Collection[str]] = GATES,
) -> dict[str, bool]:
    """Each known gate with whether it is on in a feature set; empty is the Default set.

    What the FeatureGates in a release's payload list wins over the table, and `on` and `off`,
    turned by hand, over both. A gate that is in both of those is off.
    """
    running = feature_set or DEFAULT
    states = {gate: running in sets for gate, sets in table.items()} | dict(listed or {})
    return states | dict.fromkeys(on, True) | dict.fromkeys(off, False)


def turned_by_hand(spec: FeatureGateSpec | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The gates that the object turns on and off one by one, in CustomNoUpgrade only."""
    custom = spec.custom_no_upgrade if spec else None
    if spec is None or custom is None or not _is_custom(spec):
        return (), ()
    return custom.enabled, custom.disabled


def holds_updates_back(feature_set: str) -> bool:
    """Whether a cluster with this feature set stays within its minor version."""
    return feature_set in NO_UPGRADE


def _is_custom(spec: FeatureGateSpec) -> bool:
    return spec.effective_feature_set == FeatureSet.CUSTOM_NO_UPGRADE
