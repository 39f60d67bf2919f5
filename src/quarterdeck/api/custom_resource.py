"""A kind of ours, declared once: where it is served, how it is shown, which payloads carry it.

The fields of the kind are those of its type; `definition` puts both together.
"""

from typing import Generic

import msgspec

from quarterdeck.api.meta import Resource, T
from quarterdeck.api.schema import Rule

SELF_MANAGED = ("self-managed-high-availability", "single-node-developer")
"""The cluster profiles in which a cluster runs its own control plane."""

ALL_PROFILES = (*SELF_MANAGED, "hypershift")
"""The self-managed profiles, and that of a cluster whose control plane is hosted elsewhere."""

CATEGORY = "quarterdeck"
"""`kubectl get quarterdeck` shows all our kinds."""


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`."""

    name: str
    json_path: str
    description: str
    type: str = "string"
    priority: int = 0
    """Above 0 the column is shown by `-o wide` only."""


def condition_column(
    type: str,  # noqa: A002 - a condition's own word
    description: str,
    *,
    show: str = "status",
    name: str = "",
    column_type: str = "string",
) -> Column:
    """A column with one field of the condition of that type."""
    path = f'.status.conditions[?(@.type=="{type}")].{show}'
    return Column(name or type, path, description, column_type)


AGE = Column("Age", ".metadata.creationTimestamp", "Time since the object was created.", "date")


class CustomResource(Resource[T], Generic[T], frozen=True, kw_only=True):
    """A kind whose CRD is generated from its type."""

    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    rules: tuple[Rule, ...] = ()
    """CEL rules over the whole object; `self.metadata.name` is the only metadata they see."""
    profiles: tuple[str, ...] = ()
    """The cluster profiles whose payload includes the CRD; none: it is in no payload."""
    feature_gate: str | None = None
    """The gate that must be on for a payload to include the CRD."""

    @property
    def crd_name(self) -> str:
        """The name of the CRD object."""
        return f"{self.plural}.{self.group}"
