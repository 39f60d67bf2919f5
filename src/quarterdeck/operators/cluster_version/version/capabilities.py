"""Which optional parts a cluster has: what `spec.capabilities` asks for, and what it ever had."""

from itertools import accumulate

from quarterdeck.api.config_v1 import (
    CapabilitiesSpec,
    CapabilitiesStatus,
    Capability,
    CapabilitySet,
)

_ADDED: tuple[tuple[CapabilitySet, frozenset[Capability]], ...] = (
    (CapabilitySet.NONE, frozenset()),
    (
        CapabilitySet.V4_11,
        frozenset(
            {
                Capability.BAREMETAL,
                Capability.MARKETPLACE,
                Capability.OPENSHIFT_SAMPLES,
                Capability.MACHINE_API,
            }
        ),
    ),
    (
        CapabilitySet.V4_12,
        frozenset(
            {
                Capability.CONSOLE,
                Capability.INSIGHTS,
                Capability.STORAGE,
                Capability.CSI_SNAPSHOT,
            }
        ),
    ),
    (CapabilitySet.V4_13, frozenset({Capability.NODE_TUNING})),
    (
        CapabilitySet.V4_14,
        frozenset({Capability.BUILD, Capability.DEPLOYMENT_CONFIG, Capability.IMAGE_REGISTRY}),
    ),
    (
        CapabilitySet.V4_15,
        frozenset({Capability.OPERATOR_LIFECYCLE_MANAGER, Capability.CLOUD_CREDENTIAL}),
    ),
    (
        CapabilitySet.V4_16,
        frozenset({Capability.INGRESS, Capability.CLOUD_CONTROLLER_MANAGER}),
    ),
    (CapabilitySet.V4_17, frozenset()),
    (CapabilitySet.V4_18, frozenset({Capability.OPERATOR_LIFECYCLE_MANAGER_V1})),
    (CapabilitySet.CURRENT, frozenset()),
)
"""What each set has that the one before has not."""

BASELINES: dict[str, frozenset[str]] = {
    baseline.value: frozenset(capability.value for capability in having)
    for (baseline, _), having in zip(
        _ADDED,
        accumulate((added for _, added in _ADDED), lambda have, more: have | more),
        strict=True,
    )
}
"""Set to its capabilities."""


def desired_capabilities(
    spec: CapabilitiesSpec | None, was: CapabilitiesStatus | None
) -> CapabilitiesStatus:
    """What is enabled: the baseline, what was added, and what ever was; a set not known is all."""
    wanted = BASELINES[CapabilitySet.CURRENT]
    if spec is not None:
        baseline = spec.baseline_capability_set or CapabilitySet.CURRENT
        wanted = BASELINES.get(baseline, wanted) | set(spec.additional_enabled_capabilities)
    enabled = wanted | set(was.enabled_capabilities if was else ())
    return CapabilitiesStatus(
        enabled_capabilities=tuple(sorted(enabled)),
        known_capabilities=tuple(sorted(capability.value for capability in Capability)),
    )
