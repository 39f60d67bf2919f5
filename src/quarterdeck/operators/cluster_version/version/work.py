"""What the engine is to do: which manifests, in which mode. A pure function of what was decided."""

from collections.abc import Iterable

import msgspec

from quarterdeck.api.config_v1 import ClusterVersion, FeatureGateSpec, FeatureSet, UpdateState
from quarterdeck.operators.cluster_version.payload.filters import included
from quarterdeck.operators.cluster_version.payload.gates import enabled_gates
from quarterdeck.operators.cluster_version.payload.graph import Mode
from quarterdeck.operators.cluster_version.payload.model import Manifest, Payload
from quarterdeck.operators.cluster_version.payload.observed import DEFAULT, Observed
from quarterdeck.operators.cluster_version.version.history import History, latest_completed
from quarterdeck.operators.cluster_version.version.semver import parse_version


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
) -> Observed:
    """What the payload's manifests are judged against."""
    feature_set = (gates.effective_feature_set if gates else "") or DEFAULT
    custom = gates.custom_no_upgrade if gates else None
    # Gates named one by one count in that feature set only, as its description says.
    by_hand = custom if feature_set == FeatureSet.CUSTOM_NO_UPGRADE else None
    parsed = parse_version(payload.release.version)
    return Observed(
        profile=profile,
        cluster_id=version.spec.cluster_id,
        feature_set=feature_set,
        enabled_gates=enabled_gates(
            payload,
            profile,
            feature_set,
            on=by_hand.enabled if by_hand else (),
            off=by_hand.disabled if by_hand else (),
        ),
        enabled_capabilities=frozenset(capabilities),
        major_version=parsed.major if parsed else None,
        overrides=version.spec.overrides,
    )


def work_for(payload: Payload, version_hash: str, observed: Observed, history: History) -> Work:
    """What is to be done with a payload now."""
    return Work(
        version=payload.release.version,
        version_hash=version_hash,
        mode=mode_of(history),
        manifests=included(payload.manifests, observed),
    )
