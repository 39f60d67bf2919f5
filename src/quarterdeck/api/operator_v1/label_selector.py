"""A label selector as a field of a spec.

The API server stores it without checking operators and values; `selector_in` of the runtime does.
"""

from typing import Annotated

from quarterdeck.api.meta import Part
from quarterdeck.api.schema import keywords


class LabelSelectorRequirement(Part):
    """A requirement about one label."""

    key: str
    """The key of the label."""

    operator: str
    """In, NotIn, Exists or DoesNotExist."""

    values: tuple[str, ...] = ()
    """The values for In and NotIn; empty for the others."""


class LabelSelectorPart(Part):
    """Which objects are selected; all requirements must be met, and an empty selector has none."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    """Requirements about labels."""

    match_labels: dict[str, str] | None = None
    """Labels, each with the value that it must have."""


OptionalSelector = Annotated[
    LabelSelectorPart | None, keywords(**{"x-kubernetes-map-type": "atomic"})
]
"""A selector that is replaced as a whole; None if there is none."""
