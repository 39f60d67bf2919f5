"""The ClusterVersion `version` of an operator that applies no payload.

The operator creates it, with a new cluster identifier, if it is missing. Its conditions report that
no release is available and none is progressing.
"""

from datetime import datetime

from quarterdeck import log as logs
from quarterdeck.api.config_v1 import (
    CLUSTER_VERSIONS,
    FEATURE_GATES,
    ClusterStatusCondition,
    ClusterVersion,
    ClusterVersionStatus,
    Release,
)
from quarterdeck.api.meta import Key
from quarterdeck.controller import DONE, Controller, Manager, Result, Watch, to_singleton
from quarterdeck.feature_gates import FEATURE_GATE_NAME
from quarterdeck.operators.cluster_version.new_version import KEY, THE_VERSION, create_version
from quarterdeck.operators.cluster_version.selections import THE_GATES
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.operators.cluster_version.version.blockers import feature_set_blockers
from quarterdeck.status import set_condition

log = logs.get_logger("cluster_version")

_NO_PAYLOAD = "this operator applies no payload; nothing in the cluster follows this version"


def add_minimal_version(manager: Manager, settings: Settings) -> Controller:
    """Keep a ClusterVersion that reports no release; returns its controller."""
    versions = manager.objects(CLUSTER_VERSIONS, THE_VERSION, writes=["create", "status"])
    gates = manager.cache(FEATURE_GATES, THE_GATES)

    async def reconcile(key: Key) -> Result:
        found = versions.get(KEY)
        if found is None:
            return await create_version(versions, manager, settings)
        gate = gates.get(Key("", FEATURE_GATE_NAME))
        feature_set = gate.spec.effective_feature_set if gate else ""
        wanted = desired_status(found, settings.release_version, feature_set, manager.now())
        if wanted != found.status:
            await versions.set_status(found, wanted)
            log.info("cluster version reported", feature_set=feature_set)
        return DONE

    watches: list[Watch] = [Watch(versions), Watch(gates, to_singleton(KEY))]
    controller = Controller("cluster-version", reconcile, watches, at_start=[KEY])
    manager.add(controller)
    return controller


def desired_status(
    version: ClusterVersion, release: str, feature_set: str, now: datetime
) -> ClusterVersionStatus:
    """The status of a cluster to which this operator has applied no release."""
    conditions = version.status.conditions if version.status else ()
    for new in (
        _condition("Available", "False", "NoPayload", _NO_PAYLOAD, now),
        _condition("Failing", "False", "AsExpected", "", now),
        _condition("Progressing", "False", "NoPayload", _NO_PAYLOAD, now),
        upgradeable(feature_set, now),
    ):
        conditions = set_condition(conditions, new, now)
    return ClusterVersionStatus(
        desired=Release(version=release, image=""),
        history=version.status.history if version.status else (),
        observed_generation=version.metadata.generation,
        version_hash="",
        conditions=conditions,
        # Not null, which a merge patch cannot write.
        available_updates=(),
    )


def upgradeable(feature_set: str, now: datetime) -> ClusterStatusCondition:
    """The condition Upgradeable; only the feature set decides it here."""
    for blocker in feature_set_blockers(feature_set):
        return _condition("Upgradeable", "False", blocker.reason, blocker.message, now)
    return _condition("Upgradeable", "True", "AsExpected", "", now)


def _condition(
    type_: str, status: str, reason: str, message: str, now: datetime
) -> ClusterStatusCondition:
    return ClusterStatusCondition(
        type=type_, status=status, reason=reason, message=message, last_transition_time=now
    )
