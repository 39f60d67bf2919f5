"""Label selectors: matchLabels and matchExpressions, their text form, and matching.

The server evaluates them for lists and watches. We evaluate them for the answers to our own writes,
which go into a cache only if its selector matches, and for operators. Pure.
"""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

Labels = Mapping[str, str]
SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]

_SPLIT = re.compile(r",(?![^(]*\))")  # commas, but not those inside `in (a, b)`
_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUALS = re.compile(r"^(?P<key>[^!=\s]+)\s*(?P<op>==|=|!=)\s*(?P<value>\S*)$")
_EXISTS = re.compile(r"^(?P<absent>!?)\s*(?P<key>[^\s!=(),]+)$")

_PART = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"(?=.{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY = re.compile(rf"({_DOMAIN}/)?{_PART}", re.ASCII)
_VALUE = re.compile(rf"({_PART})?", re.ASCII)


class LabelRequirement(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of matchExpressions."""

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.operator in ("In", "NotIn")) is not bool(self.values):
            need = "needs values" if self.operator in ("In", "NotIn") else "has no values"
            raise ValueError(f"label selector: {self.operator} of {self.key!r} {need}")
        _check(self.key, *self.values)

    def matches(self, labels: Labels) -> bool:
        """Whether these labels match; NotIn also matches without the label."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels

    def __str__(self) -> str:
        values = ",".join(sorted(self.values))
        match self.operator:
            case "In":
                return f"{self.key} in ({values})"
            case "NotIn":
                return f"{self.key} notin ({values})"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"


class LabelSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Selects objects by their labels, as `spec.selector` of a Deployment; empty selects all."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelRequirement, ...] = ()

    def __post_init__(self) -> None:
        for key, value in self.match_labels.items():
            _check(key, value)

    @property
    def keys(self) -> frozenset[str]:
        """The labels that every selected object has."""
        present = (it.key for it in self.match_expressions if it.operator in ("In", "Exists"))
        return frozenset((*self.match_labels, *present))

    def matches(self, labels: Labels) -> bool:
        """Whether an object with these labels is selected."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )

    def __str__(self) -> str:
        """The text form of kubectl and of queries; equal selectors have the same text."""
        equal = [f"{key}={value}" for key, value in sorted(self.match_labels.items())]
        return ",".join([*equal, *sorted(map(str, self.match_expressions))])


def _check(key: str, *values: str) -> None:
    """Refuse what no label can be: its text would select something else, `x,y` two labels."""
    if not _KEY.fullmatch(key):
        raise ValueError(
            f"label selector: {key[:80]!r} is no name of a label: use at most 63 letters, digits, "
            "'-', '_' and '.', with a DNS name and '/' before them if need be"
        )
    for value in values:
        if not _VALUE.fullmatch(value):
            raise ValueError(
                f"label selector: {value[:80]!r} is no value of {key!r}: use at most 63 letters, "
                "digits, '-', '_' and '.'"
            )


EVERYTHING = LabelSelector()
"""Selects every object."""


def parse_selector(text: str) -> LabelSelector:
    """The selector of a text in kubectl's syntax."""
    equal: dict[str, str] = {}
    others: list[LabelRequirement] = []
    for part in filter(None, (part.strip() for part in _SPLIT.split(text))):
        key, operator, values = _parsed(part)
        # The same key twice with two values is allowed, and matches nothing.
        if operator == "In" and len(values) == 1 and key not in equal:
            equal[key] = values[0]
        else:
            others.append(LabelRequirement(key, operator, values))
    return LabelSelector(match_labels=equal, match_expressions=tuple(others))


def _parsed(text: str) -> tuple[str, SelectorOperator, tuple[str, ...]]:
    if match := _SET.match(text):
        values = tuple(value.strip() for value in match["values"].split(","))
        return match["key"], "In" if match["op"] == "in" else "NotIn", values
    if match := _EQUALS.match(text):
        return match["key"], "NotIn" if match["op"] == "!=" else "In", (match["value"],)
    if match := _EXISTS.match(text):
        return match["key"], "DoesNotExist" if match["absent"] else "Exists", ()
    raise ValueError(f"label selector {text!r} is none of: key, !key, key=v, key!=v, key in (v, w)")
