"""The nodes for the pods of an operator: affinity, tolerations, and how they spread. Pure."""

from collections.abc import Iterable

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.delivery.checks import check_label_key, check_label_value


class NodeLabel(msgspec.Struct, frozen=True):
    """Selects nodes by one label."""

    key: str
    values: tuple[str, ...] = ()
    """The label has one of these values; any value if empty."""

    def __post_init__(self) -> None:
        """Refuse what no label can be."""
        check_label_key("nodes.key", self.key)
        for value in self.values:
            check_label_value("nodes.values", value)


CONTROL_PLANE_ROLES = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
"""The labels of control-plane nodes, and the taints on them: today's name and the older one."""
CONTROL_PLANE = tuple(map(NodeLabel, CONTROL_PLANE_ROLES))
"""Selects the nodes of the control plane."""


def affinity(*, preferred: Iterable[NodeLabel] = (), required: Iterable[NodeLabel] = ()) -> Object:
    """`affinity` of a pod for nodes with one of these labels; empty without labels."""
    node: Object = {}
    if terms := [_term(label) for label in required]:
        # A node must match one of the terms.
        node["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if terms := [_term(label) for label in preferred]:
        node["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": 100, "preference": term} for term in terms
        ]
    return {"nodeAffinity": node} if node else {}


def spread_over_nodes(labels: Object) -> list[Object]:
    """`topologySpreadConstraints` that place the pods of one template on different nodes.

    Zones are not among them: the scheduler ignores a node without one of the keys for all of them,
    and so would not spread at all in a cluster without zones. `apart_by_zone` is for these.
    """
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels},
            "matchLabelKeys": [_TEMPLATE],
        }
    ]


def apart_by_zone(labels: Object) -> Object:
    """`affinity` by which pods of one template prefer different zones, where there are zones."""
    term = {
        "topologyKey": "topology.kubernetes.io/zone",
        "labelSelector": {"matchLabels": labels},
        "matchLabelKeys": [_TEMPLATE],
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


_TEMPLATE = "pod-template-hash"
"""A Deployment's label on its pods. In a roll-out those of the old template do not count."""


def tolerations(taints: Iterable[str]) -> list[Object]:
    """`tolerations` of a pod for taints with these keys, with any value and effect."""
    return [{"key": taint, "operator": "Exists"} for taint in taints]


def _term(label: NodeLabel) -> Object:
    wanted: Object = {"key": label.key, "operator": "In" if label.values else "Exists"}
    if label.values:
        wanted["values"] = list(label.values)
    return {"matchExpressions": [wanted]}
