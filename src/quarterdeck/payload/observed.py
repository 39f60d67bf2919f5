"""The facts about a cluster that the filters use: profile, feature set, gates, capabilities.

Also the known names of each; an unknown name in a payload is a mistake.
"""

import msgspec

from quarterdeck.api.config_v1 import Capability, ComponentOverride
from quarterdeck.feature_gates import DEFAULT

SELF_MANAGED = "self-managed-high-availability"
PROFILES = (SELF_MANAGED, "single-node-developer", "ibm-cloud-managed", "hypershift")
CAPABILITIES = frozenset(capability.value for capability in Capability)


class ObservedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a cluster that the filters use."""

    profile: str = SELF_MANAGED
    cluster_id: str = ""
    """The identifier with which manifests can exclude this cluster."""
    feature_set: str = DEFAULT
    """One of FEATURE_SETS; empty is Default, as in the FeatureGate object."""
    enabled_gates: frozenset[str] = frozenset()
    known_capabilities: frozenset[str] = CAPABILITIES
    enabled_capabilities: frozenset[str] = CAPABILITIES
    major_version: int | None = None
    """The major version of the release; None if it is not known, which excludes nothing."""
    overrides: tuple[ComponentOverride, ...] = ()
