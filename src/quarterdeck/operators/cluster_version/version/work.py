"""What the engine is to do: which manifests, in which mode. A pure function of what was decided."""

from collections.abc import Iterable

import msgspec

from quarterdeck.api.config_v1 import ClusterVersion, FeatureGateSpec, UpdateState
from quarterdeck.feature_gates import DEFAULT, turned_by_hand
from quarterdeck.operators.cluster_version.history import History, latest_completed
from quarterdeck.payload.filters import included
from quarterdeck.payload.gates import enabled_gates
from quarterdeck.payload.graph import Mode
from quarterdeck.payload.model import Manifest, Payload
from quarterdeck.payload.observed import ObservedCluster
from quarterdeck.versions import parse_version


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One payload, as far as it counts on this cluster, and how it is run."""

    version: str
    version_hash: str
    mode: Mode
    manifests: tuple[Manifest, ...]

    def is_same_as(self, other: "Work | None") -> bool:
        """Whether there is nothing to begin anew; manifests of one payload are the same objects."""
        return (
            other is not None
            and (self.version, self.version_hash, self.mode)
            == (other.version, other.version_hash, other.mode)
            and self.manifests == other.manifests
        )


def mode_of(history: History) -> Mode:
    """What the cluster is going through, by its history alone."""
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
    """What the payload's manifests are judged against."""
    feature_set = (gates.effective_feature_set if gates else "") or DEFAULT
    on, off = turned_by_hand(gates)
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
    """What is to be done with a payload now."""
    return Work(
        version=payload.release.version,
        version_hash=version_hash,
        mode=mode_of(history),
        manifests=included(payload.manifests, observed),
    )
