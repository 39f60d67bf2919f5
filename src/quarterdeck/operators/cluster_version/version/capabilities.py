"""Which optional parts a cluster has: what `spec.capabilities` asks for, and what it ever had.

A cluster does not lose what it runs. A release may make optional what was part of every cluster
before: then the capability that the objects now belong to is enabled with the update, whether or
not the spec asks for it, and stays. Pure; what is enabled is remembered in the status.
"""

from collections.abc import Iterable
from itertools import accumulate

from quarterdeck.api.config_v1 import (
    CapabilitiesSpec,
    CapabilitiesStatus,
    Capability,
    CapabilitySet,
)
from quarterdeck.payload import annotations as known
from quarterdeck.payload.model import Manifest

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
    spec: CapabilitiesSpec | None,
    was: CapabilitiesStatus | None,
    implied: Iterable[str] = (),
) -> CapabilitiesStatus:
    """What is enabled: what the spec asks for, what ever was, and what an update implies."""
    had = was.enabled_capabilities if was else ()
    return CapabilitiesStatus(
        enabled_capabilities=tuple(sorted({*wanted_capabilities(spec), *had, *implied})),
        known_capabilities=tuple(sorted(capability.value for capability in Capability)),
    )


def wanted_capabilities(spec: CapabilitiesSpec | None) -> frozenset[str]:
    """The baseline and what is added to it; a set that is not known is all of them."""
    every = BASELINES[CapabilitySet.CURRENT]
    if spec is None:
        return every
    baseline = spec.baseline_capability_set or CapabilitySet.CURRENT
    return BASELINES.get(baseline, every) | set(spec.additional_enabled_capabilities)


def not_asked_for(spec: CapabilitiesSpec | None, now: CapabilitiesStatus) -> tuple[str, ...]:
    """The capabilities that are enabled although the spec does not ask for them."""
    return tuple(sorted(set(now.enabled_capabilities) - wanted_capabilities(spec)))


def implied_capabilities(running: Iterable[Manifest], coming: Iterable[Manifest]) -> frozenset[str]:
    """The capabilities to which a release assigns objects that the cluster runs already.

    `running` are the manifests that count now, `coming` those of the release that would count if
    all capabilities were enabled.
    """
    there = {manifest.identity for manifest in running}
    return frozenset(
        name
        for manifest in coming
        if known.CAPABILITY in manifest.annotations and manifest.identity in there
        for name in known.names(manifest.annotations[known.CAPABILITY], "+")
    )
