"""Converts Kubernetes quantities for the downward API."""

import math
from fractions import Fraction

from quarterdeck.kube.quantity import parse_quantity


def in_units_of(quantity: str, divisor: str) -> int:
    """The quantity divided by the divisor, rounded up."""
    return math.ceil(_value(quantity) / (_value(divisor) or 1))


def _value(text: str) -> Fraction:
    value = parse_quantity(text)
    if value is None:
        raise ValueError(f"not a quantity: {text!r}; write a number with a suffix such as m or Mi")
    return value
