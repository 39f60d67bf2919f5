"""Which objects of a kind an operator reads."""

import msgspec

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


ALL = Selection()
