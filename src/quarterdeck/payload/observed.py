"""What a manifest is judged against: the cluster's profile, feature set, gates, capabilities.

Also the names that are known for each; an unknown one in a payload is a mistake in it.
"""

import msgspec

from quarterdeck.api.config_v1 import Capability, ComponentOverride
from quarterdeck.feature_gates import DEFAULT

SELF_MANAGED = "self-managed-high-availability"
PROFILES = (SELF_MANAGED, "single-node-developer", "ibm-cloud-managed", "hypershift")
CAPABILITIES = frozenset(capability.value for capability in Capability)


class ObservedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """All that the filters may know of a cluster."""

    profile: str = SELF_MANAGED
    cluster_id: str = ""
    """The identifier by which manifests can exclude this cluster."""
    feature_set: str = DEFAULT
    """One of FEATURE_SETS; empty is Default, as in the FeatureGate object."""
    enabled_gates: frozenset[str] = frozenset()
    known_capabilities: frozenset[str] = CAPABILITIES
    enabled_capabilities: frozenset[str] = CAPABILITIES
    major_version: int | None = None
    """The release's; None where it is not known, and then excludes nothing."""
    overrides: tuple[ComponentOverride, ...] = ()
