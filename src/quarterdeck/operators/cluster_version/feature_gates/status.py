"""The desired status of FeatureGate for this release, and who else writes it. Pure.

On OpenShift another operator writes that status. On plain Kubernetes the cluster version operator
does.
"""

from collections.abc import Collection, Iterable, Mapping

from quarterdeck.api.config_v1 import (
    FeatureGate,
    FeatureGateAttributes,
    FeatureGateDetails,
    FeatureGateStatus,
)


def desired_status(
    gates: FeatureGate, version: str, states: Mapping[str, bool], running: Collection[str] = ()
) -> FeatureGateStatus:
    """The status with this version's gates; other versions keep their entry while they run."""
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
    """The other field managers that own `status.featureGates`."""
    return sorted(
        {
            entry.manager
            for entry in gates.metadata.managed_fields
            if entry.manager != ours and "f:featureGates" in entry.fields.get("f:status", {})
        }
    )


def _listed(names: Iterable[str]) -> tuple[FeatureGateAttributes, ...]:
    return tuple(FeatureGateAttributes(name=name) for name in sorted(names))
