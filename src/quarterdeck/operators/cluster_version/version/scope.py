"""Decides which manifests of a payload are included on this cluster. Pure."""

from collections.abc import Iterable

import msgspec

from quarterdeck.api.config_v1 import CapabilitiesStatus, ClusterVersion, FeatureGateSpec
from quarterdeck.operators.cluster_version.payloads import Loaded
from quarterdeck.operators.cluster_version.version.capabilities import (
    desired_capabilities,
    implied_capabilities,
)
from quarterdeck.operators.cluster_version.version.decide import broken, empty
from quarterdeck.operators.cluster_version.version.updates import UpdateRefused
from quarterdeck.operators.cluster_version.version.work import observed_cluster
from quarterdeck.payload.filters import included
from quarterdeck.payload.model import Payload, PayloadError
from quarterdeck.payload.observed import CAPABILITIES, ObservedCluster
from quarterdeck.payload.releases import Offer


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster's properties that include or exclude manifests, without the release."""

    version: ClusterVersion
    gates: FeatureGateSpec | None
    profile: str
    capabilities: CapabilitiesStatus

    def observed(self, payload: Payload) -> ObservedCluster:
        """The observed cluster for this payload's filters."""
        enabled = self.capabilities.enabled_capabilities
        return observed_cluster(self.version, self.gates, enabled, payload, self.profile)

    def usable(self, offer: Offer, found: Loaded | PayloadError) -> Loaded | UpdateRefused:
        """The payload, or why it cannot be applied to this cluster."""
        if isinstance(found, PayloadError):
            return broken(offer.release.version, found)
        # Overrides are ignored here: an administrator may override all manifests.
        observed = msgspec.structs.replace(self.observed(found.payload), overrides=())
        if not included(found.payload.manifests, observed):
            return empty(found.payload, self.profile)
        return found

    def after_update(self, running: Iterable[Payload], coming: Payload) -> "Scope":
        """The scope with the capabilities that an update to this payload implies."""
        runs = [m for old in running for m in included(old.manifests, self.observed(old))]
        with_all = msgspec.structs.replace(self.observed(coming), enabled_capabilities=CAPABILITIES)
        implied = implied_capabilities(runs, included(coming.manifests, with_all))
        spec = self.version.spec.capabilities
        capabilities = desired_capabilities(spec, self.capabilities, implied)
        return msgspec.structs.replace(self, capabilities=capabilities)


def current_scope(version: ClusterVersion, gates: FeatureGateSpec | None, profile: str) -> Scope:
    """The scope while no update begins."""
    was = version.status.capabilities if version.status else None
    return Scope(
        version=version,
        gates=gates,
        profile=profile,
        capabilities=desired_capabilities(version.spec.capabilities, was),
    )
