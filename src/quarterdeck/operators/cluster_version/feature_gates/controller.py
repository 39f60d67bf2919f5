"""Reports in FeatureGate's status which gates are on for this release, if nobody else does."""

from quarterdeck import log as logs
from quarterdeck.api.config_v1 import (
    CLUSTER_OPERATORS,
    CLUSTER_VERSIONS,
    FEATURE_GATES,
)
from quarterdeck.api.meta import Key
from quarterdeck.controller import (
    DONE,
    Controller,
    Manager,
    Result,
    Selection,
    Watch,
    to_singleton,
)
from quarterdeck.feature_gates import DEFAULT, FEATURE_GATE_NAME, custom_gates, gate_states
from quarterdeck.operators.cluster_version.feature_gates.status import desired_status, other_owners
from quarterdeck.operators.cluster_version.history import maybe_running
from quarterdeck.operators.cluster_version.payloads import Loaded, Payloads
from quarterdeck.operators.cluster_version.selections import THE_GATES
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.payload.gates import listed_gates

log = logs.get_logger("cluster_version.feature_gates")

_KEY = Key("", FEATURE_GATE_NAME)
_VERSION = Key("", "version")
_OWNER = Key("", "config-operator")
"""The cluster operator that writes the status on OpenShift."""


def add_feature_gates(
    manager: Manager, settings: Settings, payloads: Payloads | None = None
) -> None:
    """Report the status of the FeatureGate `cluster` while no other operator owns it.

    The other owner counts only with its ClusterOperator present; edits by hand are overwritten.
    """
    gates = manager.objects(FEATURE_GATES, THE_GATES, writes=["status"])
    versions = manager.cache(CLUSTER_VERSIONS, Selection(name=_VERSION.name, optional=True))
    owner = manager.cache(CLUSTER_OPERATORS, Selection(name=_OWNER.name, optional=True))

    async def listed(feature_set: str) -> dict[str, bool]:
        """The gates in this release's own payload; empty if it cannot be read."""
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
        owners = other_owners(found, manager.field_manager)
        if owners and owner.get(_OWNER) is not None:
            log.v(4).info("feature gates left to their owner", owners=owners)
            return DONE
        feature_set = found.spec.effective_feature_set
        on, off = custom_gates(found.spec)
        states = gate_states(feature_set, listed=await listed(feature_set), on=on, off=off)
        version = versions.get(_VERSION)
        running = maybe_running(version.status.history if version and version.status else ())
        wanted = desired_status(found, settings.release_version, states, running)
        if wanted != found.status:
            await gates.set_status(found, wanted)
            log.info(
                "feature gates reported",
                version=settings.release_version,
                feature_set=feature_set or DEFAULT,
                enabled=sorted(gate for gate, is_on in states.items() if is_on),
                disabled=sorted(gate for gate, is_on in states.items() if not is_on),
            )
        return DONE

    watches: list[Watch] = [
        Watch(gates),
        Watch(versions, to_singleton(_KEY)),
        Watch(owner, to_singleton(_KEY)),
    ]
    manager.add(Controller("feature-gates", reconcile, watches))
