"""Which manifests of any payload count on this cluster, as things are in one round. Pure."""

from collections.abc import Iterable

import msgspec

from quarterdeck.api.config_v1 import CapabilitiesStatus, ClusterVersion, FeatureGateSpec
from quarterdeck.operators.cluster_version.payloads import Loaded
from quarterdeck.operators.cluster_version.version.capabilities import (
    desired_capabilities,
    implied_capabilities,
)
from quarterdeck.operators.cluster_version.version.decide import broken, empty
from quarterdeck.operators.cluster_version.version.updates import Refused
from quarterdeck.operators.cluster_version.version.work import observed_cluster
from quarterdeck.payload.filters import included
from quarterdeck.payload.model import Payload, PayloadError
from quarterdeck.payload.observed import CAPABILITIES, ObservedCluster
from quarterdeck.payload.releases import Offer


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What manifests are judged by, the release aside."""

    version: ClusterVersion
    gates: FeatureGateSpec | None
    profile: str
    capabilities: CapabilitiesStatus

    def observed(self, payload: Payload) -> ObservedCluster:
        """What this payload's manifests are judged against."""
        enabled = self.capabilities.enabled_capabilities
        return observed_cluster(self.version, self.gates, enabled, payload, self.profile)

    def usable(self, offer: Offer, found: Loaded | PayloadError) -> Loaded | Refused:
        """The payload, or why it cannot be applied here."""
        if isinstance(found, PayloadError):
            return broken(offer.release.version, found)
        # Overridden manifests count here: whoever overrides all of them has their reasons.
        observed = msgspec.structs.replace(self.observed(found.payload), overrides=())
        if not included(found.payload.manifests, observed):
            return empty(found.payload, self.profile)
        return found

    def after_update(self, running: Iterable[Payload], coming: Payload) -> "Scope":
        """The same with the capabilities to which an update moves what the cluster runs."""
        runs = [m for old in running for m in included(old.manifests, self.observed(old))]
        with_all = msgspec.structs.replace(self.observed(coming), enabled_capabilities=CAPABILITIES)
        implied = implied_capabilities(runs, included(coming.manifests, with_all))
        spec = self.version.spec.capabilities
        capabilities = desired_capabilities(spec, self.capabilities, implied)
        return msgspec.structs.replace(self, capabilities=capabilities)


def current_scope(version: ClusterVersion, gates: FeatureGateSpec | None, profile: str) -> Scope:
    """What counts while no update begins."""
    was = version.status.capabilities if version.status else None
    return Scope(
        version=version,
        gates=gates,
        profile=profile,
        capabilities=desired_capabilities(version.spec.capabilities, was),
    )
