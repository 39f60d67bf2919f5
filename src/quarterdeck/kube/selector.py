"""Label selectors as values: matchLabels and matchExpressions, their text form, and who matches.

The server evaluates them for lists and watches; we do so for the answers to our own writes, which
go into a cache only if the cache's selector would have let them through, and for decisions of
operators. Pure.
"""

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

Labels = Mapping[str, str]
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]

_SPLIT = re.compile(r",(?![^(]*\))")  # commas, but not those inside `in (a, b)`
_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUALS = re.compile(r"^(?P<key>[^!=\s]+)\s*(?P<op>==|=|!=)\s*(?P<value>\S*)$")
_EXISTS = re.compile(r"^(?P<absent>!?)\s*(?P<key>[^\s!=(),]+)$")


class LabelRequirement(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of matchExpressions."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.operator in ("In", "NotIn")) is not bool(self.values):
            need = "needs values" if self.operator in ("In", "NotIn") else "has no values"
            raise ValueError(f"label selector: {self.operator} of {self.key!r} {need}")

    def matches(self, labels: Labels) -> bool:
        """Whether these labels satisfy it; NotIn is satisfied by the lack of the label too."""
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
    """Objects by their labels, as `spec.selector` of a Deployment has it; empty, it is all."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelRequirement, ...] = ()

    @property
    def keys(self) -> frozenset[str]:
        """The labels that a selected object has for certain."""
        present = (it.key for it in self.match_expressions if it.operator in ("In", "Exists"))
        return frozenset((*self.match_labels, *present))

    def matches(self, labels: Labels) -> bool:
        """Whether an object with these labels is selected."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )

    def __str__(self) -> str:
        """The text form, as kubectl and the API server's queries have it; always the same one."""
        equal = [f"{key}={value}" for key, value in sorted(self.match_labels.items())]
        return ",".join([*equal, *sorted(map(str, self.match_expressions))])


EVERYTHING = LabelSelector()
"""Selects every object."""


def parse_selector(text: str) -> LabelSelector:
    """The selector that a text in kubectl's syntax means."""
    equal: dict[str, str] = {}
    others: list[LabelRequirement] = []
    for part in filter(None, (part.strip() for part in _SPLIT.split(text))):
        key, operator, values = _parsed(part)
        # Twice the same key with two values is no mistake: nothing matches it.
        if operator == "In" and len(values) == 1 and key not in equal:
            equal[key] = values[0]
        else:
            others.append(LabelRequirement(key, operator, values))
    return LabelSelector(match_labels=equal, match_expressions=tuple(others))


def _parsed(text: str) -> tuple[str, Operator, tuple[str, ...]]:
    if match := _SET.match(text):
        values = tuple(value.strip() for value in match["values"].split(","))
        return match["key"], "In" if match["op"] == "in" else "NotIn", values
    if match := _EQUALS.match(text):
        return match["key"], "NotIn" if match["op"] == "!=" else "In", (match["value"],)
    if match := _EXISTS.match(text):
        return match["key"], "DoesNotExist" if match["absent"] else "Exists", ()
    raise ValueError(f"label selector {text!r} is none of: key, !key, key=v, key!=v, key in (v, w)")
