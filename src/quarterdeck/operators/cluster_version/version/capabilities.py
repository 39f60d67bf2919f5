"""The capabilities of a cluster: those in `spec.capabilities`, and those that it ever had. Pure.

An update does not remove what a cluster runs. A release may move objects that every cluster had
into a capability. The update then enables that capability, whether or not the spec asks for it, and
it stays enabled. The status records the enabled capabilities.
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
"""The capabilities that each set adds to the one before."""

BASELINES: dict[str, frozenset[str]] = {
    baseline.value: frozenset(capability.value for capability in having)
    for (baseline, _), having in zip(
        _ADDED,
        accumulate((added for _, added in _ADDED), lambda have, more: have | more),
        strict=True,
    )
}
"""All capabilities of each set."""


def desired_capabilities(
    spec: CapabilitiesSpec | None,
    was: CapabilitiesStatus | None,
    implied: Iterable[str] = (),
) -> CapabilitiesStatus:
    """The enabled capabilities: those in the spec, those enabled before, and those implied."""
    had = was.enabled_capabilities if was else ()
    return CapabilitiesStatus(
        enabled_capabilities=tuple(sorted({*wanted_capabilities(spec), *had, *implied})),
        known_capabilities=tuple(sorted(capability.value for capability in Capability)),
    )


def wanted_capabilities(spec: CapabilitiesSpec | None) -> frozenset[str]:
    """The baseline set and the additional capabilities; an unknown set counts as all."""
    every = BASELINES[CapabilitySet.CURRENT]
    if spec is None:
        return every
    baseline = spec.baseline_capability_set or CapabilitySet.CURRENT
    return BASELINES.get(baseline, every) | set(spec.additional_enabled_capabilities)


def not_asked_for(spec: CapabilitiesSpec | None, now: CapabilitiesStatus) -> tuple[str, ...]:
    """The capabilities that are enabled although the spec does not ask for them."""
    return tuple(sorted(set(now.enabled_capabilities) - wanted_capabilities(spec)))


def implied_capabilities(running: Iterable[Manifest], coming: Iterable[Manifest]) -> frozenset[str]:
    """The capabilities to which a release assigns objects that the cluster has already.

    `running` are the manifests included now; `coming` are those of the release that would be
    included if all capabilities were enabled.
    """
    there = {manifest.identity for manifest in running}
    return frozenset(
        name
        for manifest in coming
        if known.CAPABILITY in manifest.annotations and manifest.identity in there
        for name in known.names(manifest.annotations[known.CAPABILITY], "+")
    )
