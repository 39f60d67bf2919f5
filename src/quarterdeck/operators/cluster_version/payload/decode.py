"""Text to documents: YAML or JSON, each document with its number and line, or why it is refused.

The payload may be hostile, so that depth, size and aliases are limited, and anything that the
API server would not take as JSON is refused here. What a document means is left to others.

PyYAML's own loader resolves YAML 1.1 dates and base-60 numbers, lets a repeated key win
silently, and builds a second tree on the way. We read libyaml's events instead, and resolve plain
scalars as Kubernetes does; it is also twice as fast.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import yaml
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

MAX_DEPTH = 100
MAX_NODES = 200_000
"""Per document, aliases counted as often as they are used; the largest real CRDs have 40,000."""

_MARKER = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NOTHING = re.compile(r"(?:\s|#[^\n]*)*\Z")
_BLANK = re.compile(r"[ \t\r\n]*")
_TEXT_TAGS = ("!", "tag:yaml.org,2002:str")
_TOO_DEEP = (f"nested more than {MAX_DEPTH} deep", "flatten it")
_LONGEST_INTEGER = 20
_NUMBER_START = frozenset("0123456789+-.")
_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_WORDS: dict[str, bool | None] = (
    dict.fromkeys(("", "~", "null", "Null", "NULL"))
    | dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True)
    | dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False)
)


class Document(msgspec.Struct, frozen=True):
    """One document that could be read."""

    number: int
    line: int
    value: Any


class Refusal(msgspec.Struct, frozen=True):
    """One document that could not."""

    number: int
    line: int
    message: str
    remedy: str


class _RefusedError(Exception):
    def __init__(self, line: int, message: str, remedy: str) -> None:
        super().__init__(message)
        self.line, self.message, self.remedy = line, message, remedy


def decode_yaml(text: str) -> Iterator[Document | Refusal]:
    """Each document between `---` lines that has content; a bad one does not hide the next."""
    for number, line, part in split_yaml(text):
        yield _yaml_document(part, number, line)


def split_yaml(text: str) -> Iterator[tuple[int, int, str]]:
    """The number, first line and text of each document that has content.

    A `---` at the start of a line ends a document wherever it stands, even in a block of text, so
    that cutting there is exact, and lets the parser start afresh after an error.
    """
    starts = [match.start() for match in _MARKER.finditer(text)]
    if not starts or not _NOTHING.match(text[: starts[0]]):
        starts.insert(0, 0)
    line, counted = 1, 0
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True), 1):
        line += text.count("\n", counted, start)
        counted = start
        part = text[start:end]
        if not _NOTHING.match(part.removeprefix("---")):
            yield number, line, part


def decode_json(text: str) -> Iterator[Document | Refusal]:
    """Each of the JSON values that follow one another in a text."""
    decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant)
    at, number = _skip_blank(text, 0), 0
    while at < len(text):
        number += 1
        line = text.count("\n", 0, at) + 1
        try:
            value, at = decoder.raw_decode(text, at)
            _check_json_limits(value)
        except json.JSONDecodeError as error:
            yield Refusal(number, error.lineno, f"not JSON: {error.msg}", "correct the syntax")
            return
        except RecursionError:
            yield Refusal(number, line, *_TOO_DEEP)
            return
        except _RefusedError as refused:
            yield Refusal(number, line, refused.message, refused.remedy)
            return
        except ValueError as error:  # an integer of thousands of digits
            yield Refusal(number, line, f"not JSON: {error}", "quote the number")
            return
        yield Document(number, line, value)
        at = _skip_blank(text, at)


def _yaml_document(text: str, number: int, line: int) -> Document | Refusal:
    try:
        value = _Builder(text).document()
    except _RefusedError as refused:
        return Refusal(number, line + refused.line, refused.message, refused.remedy)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = line + (mark.line if mark else 0)
        what = ": ".join(part for part in (error.context, error.problem) if part)
        return Refusal(number, at, f"not YAML: {what}", "correct the syntax")
    except yaml.YAMLError as error:
        at = line + text.count("\n", 0, getattr(error, "position", 0))
        what = getattr(error, "reason", str(error))
        return Refusal(number, at, f"not YAML: {what}", "remove what is not text")
    # A first line of only `---` belongs to the document, but it starts on the next.
    blank = _MARKER.match(text) is not None and not text.partition("\n")[0][3:].strip()
    return Document(number, line + blank, value)


class _Builder:
    """Turns the events of one document into plain data."""

    def __init__(self, text: str) -> None:
        self._next: Callable[[], Event | None] = CParser(text).get_event
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0

    def document(self) -> Any:
        value = None
        seen = False
        while not isinstance(event := self._next(), StreamEndEvent | None):
            if isinstance(event, DocumentStartEvent):
                if seen:
                    raise _RefusedError(_line(event), "a second document", "put `---` before it")
                seen = True
                value = self._node(self._next(), 1)
        return value

    def _node(self, event: Event | None, depth: int) -> Any:
        if isinstance(event, AliasEvent):
            return self._alias(event)
        before = self._nodes
        self._count(event, 1)
        if isinstance(event, ScalarEvent):
            value = _scalar(event)
        elif isinstance(event, MappingStartEvent | SequenceStartEvent):
            if depth > MAX_DEPTH:
                raise _RefusedError(_line(event), *_TOO_DEEP)
            if event.tag is not None:
                raise _RefusedError(_line(event), f"the tag {event.tag}", "remove it")
            mapping = isinstance(event, MappingStartEvent)
            value = self._mapping(depth) if mapping else self._sequence(depth)
        else:
            raise _RefusedError(_line(event), "no content", "correct the syntax")
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self._nodes - before)
        return value

    def _mapping(self, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := self._next(), MappingEndEvent):
            if not isinstance(event, ScalarEvent):
                raise _RefusedError(_line(event), "a key that is not text", "use a text as the key")
            key = event.value
            if key in result:
                raise _RefusedError(
                    _line(event), f"the key {_quoted(key)} twice", "keep one of the two"
                )
            value = self._node(self._next(), depth + 1)
            if key == "<<" and event.implicit[0]:
                merged = _merge(value, _line(event)) | merged
            else:
                result[key] = value
        return merged | result if merged else result

    def _sequence(self, depth: int) -> list[Any]:
        result = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            result.append(self._node(event, depth + 1))
        return result

    def _alias(self, event: AliasEvent) -> Any:
        if event.anchor not in self._anchors:
            raise _RefusedError(
                _line(event), f"*{event.anchor} stands for nothing", "define it before its use"
            )
        value, nodes = self._anchors[event.anchor]
        self._count(event, nodes)
        return value

    def _count(self, event: Event | None, nodes: int) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise _RefusedError(
                _line(event),
                f"more than {MAX_NODES:,} values, aliases expanded",
                "split the document, or write out what its aliases stand for",
            )


def _line(event: Event | None) -> int:
    mark = event.start_mark if event is not None else None
    return mark.line if mark is not None else 0


def _scalar(event: ScalarEvent) -> Any:
    if event.implicit[0]:
        text = event.value
        # Words first: most plain scalars are names, and one lookup settles them.
        value = _WORDS.get(text, text)
        if value is text and text[0] in _NUMBER_START:
            return _number(text, event)
        return value
    if event.tag is not None and event.tag not in _TEXT_TAGS:
        raise _RefusedError(_line(event), f"the tag {event.tag}", "remove it")
    return event.value


def _number(text: str, event: ScalarEvent) -> int | float | str:
    """The number that a plain scalar stands for, by Kubernetes' rules; text where it is none."""
    value: int | float
    if _INTEGER.match(text) and len(text) < _LONGEST_INTEGER:
        digits = text.replace("_", "")
        octal = digits.lstrip("+-").startswith("0") and digits.lstrip("+-")[1:].isdecimal()
        return int(digits, 8) if octal else int(digits, 0)
    if _FLOAT.match(text):
        value = float(text)
    elif _NOT_FINITE.match(text):
        value = math.nan
    else:
        return text
    if not math.isfinite(value):
        raise _RefusedError(_line(event), f"{_quoted(text)} is no number in JSON", "quote it")
    return value


def _merge(value: Any, line: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for part in value if isinstance(value, list) else [value]:
        if not isinstance(part, dict):
            raise _RefusedError(line, "`<<` with something that has no keys", "give it a mapping")
        result = part | result
    return result


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _RefusedError(0, f"the key {_quoted(twice)} twice", "keep one of the two")
    return result


def _no_constant(name: str) -> None:
    raise _RefusedError(0, f"{name} is no number in JSON", "quote it")


def _check_json_limits(value: Any) -> None:
    """Refuse a value that is too deep or too large, without recursion."""
    nodes, depth, level = 0, 0, [value]
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if depth > MAX_DEPTH + 1:
            raise _RefusedError(0, *_TOO_DEEP)
        if nodes > MAX_NODES:
            raise _RefusedError(0, f"more than {MAX_NODES:,} values", "split the document")
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]


def _skip_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at
