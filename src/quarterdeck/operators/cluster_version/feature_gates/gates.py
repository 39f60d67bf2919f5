"""Which feature gates are on: what the release's table and the FeatureGate object make of it.

Pure. A component believes only what FeatureGate's status says for its own version. Who writes
that status is decided here too: on OpenShift another operator does, on plain Kubernetes nobody,
and then the cluster version operator computes it.
"""

from collections.abc import Collection, Iterable, Mapping

from quarterdeck.api.config_v1 import (
    FeatureGate,
    FeatureGateAttributes,
    FeatureGateDetails,
    FeatureGateSpec,
    FeatureGateStatus,
    FeatureSet,
)
from quarterdeck.operators.cluster_version.payload.observed import DEFAULT, GATES

FEATURE_GATE_NAME = "cluster"
"""The FeatureGate that counts."""

LOG_LEVEL_GATE = "ClusterVersionOperatorConfiguration"

NO_UPGRADE = (
    FeatureSet.CUSTOM_NO_UPGRADE,
    FeatureSet.DEV_PREVIEW_NO_UPGRADE,
    FeatureSet.TECH_PREVIEW_NO_UPGRADE,
)
"""Feature sets that cannot be left again, and that hold minor updates back."""


def gate_is_on(gates: FeatureGate | None, version: str, gate: str) -> bool:
    """Whether a gate is on for a version; off where nobody has said so for that very version."""
    entry = entry_for(gates, version)
    return entry is not None and any(one.name == gate for one in entry.enabled)


def entry_for(gates: FeatureGate | None, version: str) -> FeatureGateDetails | None:
    """What the gates are for a version; None where nobody has said."""
    entries = gates.status.feature_gates if gates else ()
    return next((entry for entry in entries if entry.version == version), None)


def gate_states(
    spec: FeatureGateSpec,
    listed: Mapping[str, bool] | None = None,
    table: Mapping[str, Collection[str]] = GATES,
) -> dict[str, bool]:
    """Each known gate with whether it is on; gates named one by one count in CustomNoUpgrade only.

    A gate that is both enabled and disabled there is off. What the FeatureGates in the release's
    payload list wins over the table, as it does when manifests are chosen by their gates.
    """
    running = spec.effective_feature_set or DEFAULT
    states = {gate: running in sets for gate, sets in table.items()} | dict(listed or {})
    custom = spec.custom_no_upgrade
    if running == FeatureSet.CUSTOM_NO_UPGRADE and custom is not None:
        states |= dict.fromkeys(custom.enabled, True)
        states |= dict.fromkeys(custom.disabled, False)
    return states


def desired_status(
    gates: FeatureGate, version: str, states: Mapping[str, bool], running: Collection[str] = ()
) -> FeatureGateStatus:
    """The status with this version's gates; entries of others stay while these versions run."""
    ours = FeatureGateDetails(
        version=version,
        enabled=_listed(gate for gate, is_on in states.items() if is_on),
        disabled=_listed(gate for gate, is_on in states.items() if not is_on),
    )
    kept = (
        entry
        for entry in gates.status.feature_gates
        if entry.version != version and entry.version in running
    )
    return FeatureGateStatus(
        conditions=gates.status.conditions,
        feature_gates=tuple(sorted((ours, *kept), key=lambda entry: entry.version)),
    )


def other_owners(gates: FeatureGate, ours: str) -> list[str]:
    """Who else has written which gates are on; while there is somebody, we leave it to them."""
    return sorted(
        {
            entry.manager
            for entry in gates.metadata.managed_fields
            if entry.manager != ours and "f:featureGates" in entry.fields.get("f:status", {})
        }
    )


def holds_updates_back(gates: FeatureGate | None) -> str:
    """The feature set because of which the cluster is not upgradeable; empty when none is."""
    chosen = gates.spec.effective_feature_set if gates else ""
    return chosen if chosen in NO_UPGRADE else ""


def _listed(names: Iterable[str]) -> tuple[FeatureGateAttributes, ...]:
    return tuple(FeatureGateAttributes(name=name) for name in sorted(names))
