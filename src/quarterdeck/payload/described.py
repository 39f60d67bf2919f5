"""A cluster as a person describes it: what the filters judge manifests against, offline. Pure."""

import msgspec

from quarterdeck.api.config_v1 import ComponentOverride
from quarterdeck.feature_gates import DEFAULT
from quarterdeck.payload.gates import enabled_gates
from quarterdeck.payload.model import Payload
from quarterdeck.payload.observed import CAPABILITIES, SELF_MANAGED, ObservedCluster


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, described without the payload, on which its feature gates depend."""

    profile: str = SELF_MANAGED
    cluster_id: str = ""
    feature_set: str = DEFAULT
    gates_on: tuple[str, ...] = ()
    gates_off: tuple[str, ...] = ()
    disabled_capabilities: frozenset[str] = frozenset()
    major_version: int | None = None
    overrides: tuple[ComponentOverride, ...] = ()

    def observed(self, payload: Payload) -> ObservedCluster:
        """What this payload's manifests are judged against."""
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
    """The unmanaged object that KIND[.GROUP]/[NAMESPACE/]NAME means; None where it is none."""
    kind, *rest = text.split("/")
    if not kind or len(rest) not in (1, 2) or not all(rest):
        return None
    kind, _, group = kind.partition(".")
    namespace = rest[0] if len(rest) == 2 else ""
    return ComponentOverride(
        group=group, kind=kind, namespace=namespace, name=rest[-1], unmanaged=True
    )
