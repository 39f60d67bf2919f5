"""Says in FeatureGate's status which gates are on for this release, where nobody else does."""

from collections.abc import Iterable

from quarterdeck import log as logs
from quarterdeck.api.config_v1 import (
    CLUSTER_VERSIONS,
    FEATURE_GATES,
    ClusterVersion,
    UpdateState,
)
from quarterdeck.api.meta import Key, Object, TypedObject
from quarterdeck.controller import DONE, Controller, Manager, Result, Watch
from quarterdeck.operators.cluster_version.feature_gates.gates import (
    FEATURE_GATE_NAME,
    desired_status,
    gate_states,
    other_owners,
)
from quarterdeck.operators.cluster_version.payload.gates import listed_gates
from quarterdeck.operators.cluster_version.payload.observed import DEFAULT
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.operators.cluster_version.version.payloads import Loaded, Payloads

log = logs.get_logger("cluster_version.feature_gates")

_KEY = Key("", FEATURE_GATE_NAME)
_VERSION = Key("", "version")


def add_feature_gates(
    manager: Manager, settings: Settings, payloads: Payloads | None = None
) -> None:
    """Compute the status of the FeatureGate `cluster` while it has no other owner."""
    gates = manager.objects(
        FEATURE_GATES, name=FEATURE_GATE_NAME, all_managed_fields=True, optional=True
    )
    versions = manager.cache(CLUSTER_VERSIONS, name=_VERSION.name, optional=True)

    async def listed(feature_set: str) -> dict[str, bool]:
        """What this release's own payload says; nothing where it cannot be read."""
        offer = (
            (await payloads.releases()).by_version(settings.release_version) if payloads else None
        )
        loaded = await payloads.load(offer) if payloads and offer else None
        if not isinstance(loaded, Loaded):
            return {}
        return listed_gates(loaded.payload, settings.profile, feature_set or DEFAULT)

    async def reconcile(key: Key) -> Result:
        found = gates.get(_KEY)
        if found is None or found.metadata.deletion_timestamp:
            return DONE
        if owners := other_owners(found, manager.field_manager):
            log.v(4).info("feature gates left to their owner", owners=owners)
            return DONE
        states = gate_states(found.spec, await listed(found.spec.effective_feature_set))
        running = running_versions(versions.get(_VERSION))
        wanted = desired_status(found, settings.release_version, states, running)
        if wanted != found.status:
            await gates.set_status(found, wanted)
            log.info(
                "feature gates reported",
                version=settings.release_version,
                feature_set=found.spec.effective_feature_set or "Default",
                enabled=sorted(gate for gate, is_on in states.items() if is_on),
                disabled=sorted(gate for gate, is_on in states.items() if not is_on),
            )
        return DONE

    own = Watch(FEATURE_GATES, name=FEATURE_GATE_NAME, all_managed_fields=True, optional=True)
    version = Watch(CLUSTER_VERSIONS, _the_gates, name=_VERSION.name, optional=True)
    manager.add(Controller("feature-gates", reconcile, [own, version]))


def _the_gates(_version: TypedObject | Object) -> Iterable[Key]:
    return (_KEY,)


def running_versions(version: ClusterVersion | None) -> frozenset[str]:
    """The versions that something in the cluster may still run: back to the last completed one."""
    found: set[str] = set()
    for entry in version.status.history if version and version.status else ():
        found.add(entry.version or "")
        if entry.state == UpdateState.COMPLETED:
            break
    return frozenset(found)
