"""The nodes that a router's pods may run on. Pure."""

from collections.abc import Sequence

import msgspec

from quarterdeck.api.meta import Object, Part
from quarterdeck.api.operator_v1 import NodePlacement

LINUX = {"kubernetes.io/os": "linux"}


def desired_placement(placement: NodePlacement | None) -> Object:
    """The fields of the pod's spec that choose its nodes."""
    chosen = placement or NodePlacement()
    labels = chosen.node_selector.match_labels if chosen.node_selector else None
    made: Object = {"nodeSelector": LINUX | (labels or {})}
    if chosen.node_selector and chosen.node_selector.match_expressions:
        # A node's requirements have the same form as those of a label selector.
        expressions = _plain(chosen.node_selector.match_expressions)
        terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        made["affinity"] = {"nodeAffinity": {required: terms}}
    if chosen.tolerations:
        made["tolerations"] = _plain(chosen.tolerations)
    return made


def _plain(parts: Sequence[Part]) -> list[Object]:
    """The parts as the API server returns them: with lists, not tuples."""
    plain: list[Object] = msgspec.json.decode(msgspec.json.encode(parts))
    return plain
