"""The values of quantities (`500m`, `1Gi`), and the fields that have them."""

import re
from fractions import Fraction

_FORM = re.compile(
    r"^(?P<number>[+-]?(\d+\.?\d*|\.\d+))(?P<suffix>[eE][+-]?\d+|[KMGTPE]i|[numkMGTPE]?)$"
)
_LONGEST = 64
"""A longer text is no quantity here: to compute with long numbers is slow."""
_LARGEST_EXPONENT = 100
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
    """The value; None for text that is not a quantity, or one of absurd length or exponent."""
    if isinstance(text, int) and text.bit_length() > _LONGEST * 4:
        return None  # Its text alone could take seconds.
    shown = str(text)
    match = _FORM.match(shown) if len(shown) <= _LONGEST else None
    if match is None:
        return None
    suffix = match["suffix"]
    if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
        exponent = int(suffix[1:])
        if abs(exponent) > _LARGEST_EXPONENT:
            return None
        return Fraction(match["number"]) * Fraction(10) ** exponent
    return Fraction(match["number"]) * _SUFFIXES[suffix]


def holds_quantity(path: tuple[str, ...]) -> bool:
    """Whether the field at a path is a quantity, which the server may store in another form."""
    return path[-1:] != () and (path[-1] in _FIELDS or (len(path) > 1 and path[-2] in _MAPS))
