"""A cluster as a user describes it, for the filters. Pure."""

import msgspec

from quarterdeck.api.config_v1 import ComponentOverride
from quarterdeck.feature_gates import DEFAULT
from quarterdeck.payload.gates import enabled_gates
from quarterdeck.payload.model import Payload
from quarterdeck.payload.observed import CAPABILITIES, SELF_MANAGED, ObservedCluster


class DescribedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A description of a cluster; its feature gates also depend on the payload."""

    profile: str = SELF_MANAGED
    cluster_id: str = ""
    feature_set: str = DEFAULT
    gates_on: tuple[str, ...] = ()
    gates_off: tuple[str, ...] = ()
    disabled_capabilities: frozenset[str] = frozenset()
    major_version: int | None = None
    overrides: tuple[ComponentOverride, ...] = ()

    def observed(self, payload: Payload) -> ObservedCluster:
        """The cluster that the manifests of this payload are filtered for."""
        return ObservedCluster(
            profile=self.profile,
            cluster_id=self.cluster_id,
            feature_set=self.feature_set,
            enabled_gates=enabled_gates(
                payload, self.profile, self.feature_set, on=self.gates_on, off=self.gates_off
            ),
            enabled_capabilities=CAPABILITIES - self.disabled_capabilities,
            major_version=self.major_version,
            overrides=self.overrides,
        )


def parse_override(text: str) -> ComponentOverride | None:
    """The override for KIND[.GROUP]/[NAMESPACE/]NAME; None if the text is something else."""
    kind, *rest = text.split("/")
    if not kind or len(rest) not in (1, 2) or not all(rest):
        return None
    kind, _, group = kind.partition(".")
    namespace = rest[0] if len(rest) == 2 else ""
    return ComponentOverride(
        group=group, kind=kind, namespace=namespace, name=rest[-1], unmanaged=True
    )
