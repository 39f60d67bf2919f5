"""Label selectors, evaluated here.

The server does it for lists and watches; we need it for the answers to our own writes, which
go into a cache only if the cache's selector would have let them through.
"""

import re
from collections.abc import Callable, Mapping

Labels = Mapping[str, str]
Requirement = Callable[[Labels], bool]

_SPLIT = re.compile(r",(?![^(]*\))")  # commas, but not those inside `in (a, b)`
_SET = re.compile(r"^(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)$")
_EQUALS = re.compile(r"^(?P<key>[^!=\s]+)\s*(?P<op>==|=|!=)\s*(?P<value>\S*)$")
_EXISTS = re.compile(r"^(?P<absent>!?)\s*(?P<key>[^\s!=(),]+)$")


def parse_selector(selector: str) -> Requirement:
    """A function that says whether labels match a selector, in kubectl's syntax."""
    parts = [_requirement(part.strip()) for part in _SPLIT.split(selector) if part.strip()]
    return lambda labels: all(part(labels) for part in parts)


def _requirement(text: str) -> Requirement:
    if match := _SET.match(text):
        values = frozenset(value.strip() for value in match["values"].split(","))
        return _within(match["key"], values, wanted=match["op"] == "in")
    if match := _EQUALS.match(text):
        return _within(match["key"], frozenset({match["value"]}), wanted=match["op"] != "!=")
    if match := _EXISTS.match(text):
        key, wanted = match["key"], not match["absent"]
        return lambda labels: (key in labels) is wanted
    raise ValueError(f"label selector {text!r} is none of: key, !key, key=v, key!=v, key in (v, w)")


def _within(key: str, values: frozenset[str], *, wanted: bool) -> Requirement:
    """`in` asks for a value; its negation also lets through what has no such label."""
    return lambda labels: (labels.get(key) in values) is wanted
