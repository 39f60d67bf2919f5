"""The work of the engine: which manifests, in which mode. Pure."""

from collections.abc import Iterable

import msgspec

from quarterdeck.api.config_v1 import ClusterVersion, FeatureGateSpec, UpdateState
from quarterdeck.feature_gates import DEFAULT, custom_gates
from quarterdeck.operators.cluster_version.history import History, latest_completed
from quarterdeck.payload.filters import included
from quarterdeck.payload.gates import enabled_gates
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Manifest, Payload
from quarterdeck.payload.observed import ObservedCluster
from quarterdeck.versions import parse_version


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The included manifests of one payload, and the mode in which they are applied."""

    version: str
    version_hash: str
    mode: Mode
    manifests: tuple[Manifest, ...]

    def is_same_as(self, other: "Work | None") -> bool:
        """Whether both are the same work, so that the engine need not restart."""
        return (
            other is not None
            and (self.version, self.version_hash, self.mode)
            == (other.version, other.version_hash, other.mode)
            and self.manifests == other.manifests
        )


def mode_of(history: History) -> Mode:
    """The mode that follows from the history."""
    if latest_completed(history) is None:
        return Mode.INITIALIZING
    if history[0].state == UpdateState.PARTIAL:
        return Mode.UPDATING
    return Mode.RECONCILING


def observed_cluster(
    version: ClusterVersion,
    gates: FeatureGateSpec | None,
    capabilities: Iterable[str],
    payload: Payload,
    profile: str,
) -> ObservedCluster:
    """The observed cluster for the payload's filters."""
    feature_set = (gates.effective_feature_set if gates else "") or DEFAULT
    on, off = custom_gates(gates)
    parsed = parse_version(payload.release.version)
    return ObservedCluster(
        profile=profile,
        cluster_id=version.spec.cluster_id,
        feature_set=feature_set,
        enabled_gates=enabled_gates(payload, profile, feature_set, on=on, off=off),
        enabled_capabilities=frozenset(capabilities),
        major_version=parsed.major if parsed else None,
        overrides=version.spec.overrides,
    )


def work_for(
    payload: Payload, version_hash: str, observed: ObservedCluster, history: History
) -> Work:
    """The work with a payload now."""
    return Work(
        version=payload.release.version,
        version_hash=version_hash,
        mode=mode_of(history),
        manifests=included(payload.manifests, observed),
    )
