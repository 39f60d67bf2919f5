"""Which feature gates are on, from the release's table and the FeatureGate object.

Pure. A component reads only the entry of its own version in FeatureGate's status.
"""

from collections.abc import Collection, Iterable, Mapping

from quarterdeck.api.config_v1 import (
    FeatureGate,
    FeatureGateDetails,
    FeatureGateSpec,
    FeatureSet,
)

FEATURE_GATE_NAME = "cluster"
"""The name of the only FeatureGate in effect."""

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
"""Feature sets that cannot be changed again, and that block minor updates."""

LOG_LEVEL_GATE = "ClusterVersionOperatorConfiguration"
GATES: Mapping[str, frozenset[str]] = {LOG_LEVEL_GATE: frozenset(FEATURE_SETS)}
"""The gates of this release, each with the feature sets in which it is on."""


def gate_is_on(gates: FeatureGate | None, version: str, gate: str) -> bool:
    """Whether a gate is on for a version; it is off if there is no entry for that version."""
    entry = entry_for(gates, version)
    return entry is not None and any(one.name == gate for one in entry.enabled)


def entry_for(gates: FeatureGate | None, version: str) -> FeatureGateDetails | None:
    """The gates of a version; None if there is no entry for it."""
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
    """Each known gate, and whether it is on in a feature set; empty is the Default set.

    `listed`, from the FeatureGates in a release's payload, wins over the table; `on` and `off`,
    which the user sets, win over both. A gate in both `on` and `off` is off.
    """
    running = feature_set or DEFAULT
    states = {gate: running in sets for gate, sets in table.items()} | dict(listed or {})
    return states | dict.fromkeys(on, True) | dict.fromkeys(off, False)


def custom_gates(spec: FeatureGateSpec | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The gates that the user has enabled and disabled; none unless the set is CustomNoUpgrade."""
    custom = spec.custom_no_upgrade if spec else None
    if spec is None or custom is None or not _is_custom(spec):
        return (), ()
    return custom.enabled, custom.disabled


def blocks_minor_updates(feature_set: str) -> bool:
    """Whether a cluster with this feature set stays within its minor version."""
    return feature_set in NO_UPGRADE


def _is_custom(spec: FeatureGateSpec) -> bool:
    return spec.effective_feature_set == FeatureSet.CUSTOM_NO_UPGRADE
