"""The values of quantities (`500m`, `1Gi`), and the fields that have them."""

import re
from fractions import Fraction

_FORM = re.compile(
    r"^(?P<number>[+-]?(\d+\.?\d*|\.\d+))(?P<suffix>[eE][+-]?\d+|[KMGTPE]i|[numkMGTPE]?)$"
)
_SUFFIXES = {
    "": Fraction(1),
    **{s: Fraction(1, 1000**n) for n, s in enumerate("mun", start=1)},
    **{s: Fraction(1000**n) for n, s in enumerate("kMGTPE", start=1)},
    **{f"{s}i": Fraction(1024**n) for n, s in enumerate("KMGTPE", start=1)},
}

# Maps with these names have quantities as values.
_MAPS = frozenset(
    {
        "limits",
        "requests",
        "capacity",
        "allocatable",
        "allocatedResources",
        "hard",
        "used",
        "overhead",
        "min",
        "max",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    }
)
_FIELDS = frozenset({"sizeLimit", "divisor", "averageValue"})


def parse_quantity(text: str | int | float) -> Fraction | None:
    """The value; None for text that is not a quantity."""
    match = _FORM.match(str(text))
    if match is None:
        return None
    suffix = match["suffix"]
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
        return Fraction(match["number"]) * Fraction(10) ** int(suffix[1:])
    return Fraction(match["number"]) * _SUFFIXES[suffix]


def holds_quantity(path: tuple[str, ...]) -> bool:
    """Whether the field at a path is a quantity, which the server may store in another form."""
    return path[-1:] != () and (path[-1] in _FIELDS or (len(path) > 1 and path[-2] in _MAPS))
