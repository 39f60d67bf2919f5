"""Kubernetes quantities, as far as the downward API needs them."""

import math
import re
from fractions import Fraction

_QUANTITY = re.compile(r"([+-]?[0-9.]+)(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)")
_SUFFIXES = {
    "": Fraction(1),
    **{suffix: Fraction(10) ** power for suffix, power in zip("num", (-9, -6, -3), strict=True)},
    **{suffix: Fraction(1000) ** (i + 1) for i, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": Fraction(1024) ** (i + 1) for i, suffix in enumerate("KMGTPE")},
}


def parse_quantity(text: str) -> Fraction:
    """The exact value of a quantity such as `250m`, `1Gi` or `1e3`."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"not a quantity: {text!r}; write a number with a suffix such as m or Mi")
    number, exponent, suffix = match.groups()
    return Fraction(number + (exponent or "")) * _SUFFIXES[suffix or ""]


def in_units_of(quantity: str, divisor: str) -> int:
    """How many divisors the quantity is, rounded up."""
    return math.ceil(parse_quantity(quantity) / (parse_quantity(divisor) or 1))
