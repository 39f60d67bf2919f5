"""The declaration of a kind: its API, its columns in kubectl, the payloads that include it.

The fields of the kind are those of its type; `definition` makes the CRD from both.
"""

from typing import Generic

import msgspec

from quarterdeck.api.meta import Resource, T
from quarterdeck.api.schema import ValidationRule

SELF_MANAGED = ("self-managed-high-availability", "single-node-developer")
"""The cluster profiles of a cluster that runs its own control plane."""

ALL_PROFILES = (*SELF_MANAGED, "hypershift")
"""The self-managed profiles, and that of a cluster with a hosted control plane."""

CATEGORY = "quarterdeck"
"""`kubectl get quarterdeck` shows all our kinds."""


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`."""

    name: str
    json_path: str
    description: str
    type: str = "string"
    priority: int = 0
    """Above 0, only `-o wide` shows the column."""


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


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The fields behind `kubectl scale`, each as a path."""

    spec_replicas: str
    status_replicas: str
    selector: str


class CustomResource(Resource[T], Generic[T], frozen=True, kw_only=True):
    """A kind whose CRD is generated from its type."""

    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    """Groups of kinds that `kubectl get` shows together."""
    columns: tuple[Column, ...] = ()
    rules: tuple[ValidationRule, ...] = ()
    """CEL rules about the whole object; of its metadata they can read only `self.metadata.name`."""
    profiles: tuple[str, ...] = ()
    """The cluster profiles whose payload includes the CRD; empty if no payload does."""
    scale: Scale | None = None
    """The fields of the subresource `scale`; None if there is none."""
    feature_gate: str | None = None
    """The feature gate that must be enabled for a payload to include the CRD."""

    @property
    def crd_name(self) -> str:
        """The name of the CRD object."""
        return f"{self.plural}.{self.group}"
