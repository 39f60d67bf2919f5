"""Which objects of a kind an operator reads."""

from collections.abc import Collection

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.controller.result import InvalidSpec
from quarterdeck.kube.selector import EVERYTHING, LabelSelector


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects of a kind; all by default."""

    namespace: str = ""
    """Only the objects in this namespace."""
    name: str = ""
    """Only the object with this name."""
    labels: LabelSelector = EVERYTHING
    fields: str = ""
    """A field selector, as `status.phase=Running`."""
    all_managed_fields: bool = False
    """Keep the managedFields of all managers, not only of the process's own operators."""
    optional: bool = False
    """Do not wait for the resource type: there are no objects until it is installed."""

    def within(self, namespaces: Collection[str]) -> "list[Selection]":
        """The selection in each of these namespaces; as it is without any, or if it names one."""
        if self.namespace or not namespaces:
            return [self]
        return [msgspec.structs.replace(self, namespace=one) for one in namespaces]

    def excludes(self, obj: Object) -> str:
        """The field by which an object to be created is outside; empty if it is inside.

        The field selector is not evaluated: the server sets most of what it can name.
        """
        meta = obj["metadata"]
        if self.namespace and meta.get("namespace") != self.namespace:
            return "metadata.namespace"
        if self.name and meta.get("name") != self.name:
            return "metadata.name"
        return "" if self.labels.matches(meta.get("labels") or {}) else "metadata.labels"

    def __str__(self) -> str:
        """The criteria, as a person reads them."""
        parts = {
            "namespace": self.namespace,
            "name": self.name,
            "labels": str(self.labels),
            "fields": self.fields,
        }
        return ", ".join(f"{name} {value}" for name, value in parts.items() if value) or "all"


ALL = Selection()

_SELECTOR_FIELDS = frozenset(("matchLabels", "matchExpressions"))


def selector_in(field: str, value: Object | None) -> LabelSelector | None:
    """The label selector that a field of an object has; None where it has none.

    What an absent selector means depends on the field; an empty one selects everything. One that
    is none, or that says more than a selector can, raises `InvalidSpec`: as it is, it would select
    something else.
    """
    if value is None:
        return None
    try:
        found = msgspec.convert(value, LabelSelector)
    except msgspec.ValidationError as error:
        raise InvalidSpec(field, value, f"correct it: {error}") from None
    if unknown := sorted(value.keys() - _SELECTOR_FIELDS):
        name = unknown[0]
        raise InvalidSpec(f"{field}.{name}", value[name], "a selector has no such field")
    return found
