"""The ClusterVersion `version`, as much of it as is true while no payload is applied.

It is created where there is none, with an identifier of its own. Its conditions claim nothing:
this operator has applied no release, so none is available, and none is on its way.
"""

import uuid
from collections.abc import Iterable
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
from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.controller import DONE, Controller, Manager, Result, Watch
from quarterdeck.kube import AlreadyExists, NotFound
from quarterdeck.operators.cluster_version.feature_gates.gates import (
    FEATURE_GATE_NAME,
    holds_updates_back,
)
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.status import set_condition

log = logs.get_logger("cluster_version")

VERSION_NAME = "version"
_KEY = Key("", VERSION_NAME)
_NO_PAYLOAD = "this operator applies no payload; nothing in the cluster follows this version"


def add_minimal_version(manager: Manager, settings: Settings) -> None:
    """Keep a ClusterVersion that claims nothing."""
    versions = manager.objects(CLUSTER_VERSIONS, name=VERSION_NAME, optional=True)
    gates = manager.cache(
        FEATURE_GATES, name=FEATURE_GATE_NAME, all_managed_fields=True, optional=True
    )

    async def reconcile(key: Key) -> Result:
        found = versions.get(_KEY)
        if found is None:
            return await create()
        feature_set = holds_updates_back(gates.get(Key("", FEATURE_GATE_NAME)))
        wanted = desired_status(found, settings.release_version, feature_set, manager.wall())
        if wanted != found.status:
            await versions.set_status(found, wanted)
            log.info("cluster version reported", upgradeable=not feature_set)
        return DONE

    async def create() -> Result:
        new = {
            "apiVersion": CLUSTER_VERSIONS.api_version,
            "kind": CLUSTER_VERSIONS.kind,
            "metadata": {"name": VERSION_NAME},
            "spec": {"clusterID": str(uuid.uuid4())},
        }
        try:
            await manager.client.create(CLUSTER_VERSIONS, new, field_manager=manager.field_manager)
        except AlreadyExists:
            return DONE
        except NotFound:
            return Result(requeue_after=5)
        log.info("cluster version created")
        return DONE

    own = Watch(CLUSTER_VERSIONS, name=VERSION_NAME, optional=True)
    gate = Watch(
        FEATURE_GATES,
        _the_version,
        name=FEATURE_GATE_NAME,
        all_managed_fields=True,
        optional=True,
    )
    manager.add(Controller("cluster-version", reconcile, [own, gate], at_start=[_KEY]))


def _the_version(_gates: TypedObject | Object) -> Iterable[Key]:
    return (_KEY,)


def desired_status(
    version: ClusterVersion, release: str, feature_set: str, now: datetime
) -> ClusterVersionStatus:
    """What is true of a cluster to which this operator has applied no release."""
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
        # Not null: a merge patch cannot say that, and none being known is none being recommended.
        available_updates=(),
    )


def upgradeable(feature_set: str, now: datetime) -> ClusterStatusCondition:
    """Upgradeable, as far as the feature set decides it."""
    if not feature_set:
        return _condition("Upgradeable", "True", "AsExpected", "", now)
    message = (
        f"the FeatureGate {FEATURE_GATE_NAME} has the feature set {feature_set}, "
        "which cannot be left again and holds minor updates back"
    )
    return _condition("Upgradeable", "False", f"FeatureSet{feature_set}", message, now)


def _condition(
    type_: str, status: str, reason: str, message: str, now: datetime
) -> ClusterStatusCondition:
    return ClusterStatusCondition(
        type=type_, status=status, reason=reason, message=message, last_transition_time=now
    )
