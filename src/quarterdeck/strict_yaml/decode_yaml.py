"""Decodes YAML text into documents.

PyYAML's own loader resolves YAML 1.1 dates and base-60 numbers, accepts repeated keys, and builds a
second tree. This decoder reads libyaml's events instead, and resolves plain scalars as Kubernetes
does; it is also twice as fast.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

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

from quarterdeck.strict_yaml.documents import (
    MAX_DEPTH,
    MAX_DOCUMENTS,
    MAX_NODES,
    MAX_TEXT,
    TOO_DEEP,
    TOO_LARGE,
    TOO_LONG,
    TOO_MANY,
    Document,
    Refusal,
    RefusedError,
    quoted,
)

_NOTHING = re.compile(r"(?:\s++|#[^\n]*+)*+\Z")
_TEXT_TAGS = ("!", "tag:yaml.org,2002:str")
_LONGEST_INTEGER = 20
_NUMBER_START = frozenset("0123456789+-.")
_INTEGER = re.compile(
    r"[-+]?(?:0b[01][01_]*|0o?[0-7][0-7_]*|0x[0-9a-fA-F][0-9a-fA-F_]*|[1-9][0-9_]*|0)\Z"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_WORDS: dict[str, bool | None] = (
    dict.fromkeys(("", "~", "null", "Null", "NULL"))
    | dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True)
    | dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False)
)


def decode_yaml(text: str) -> Iterator[Document | Refusal]:
    """Each document with content between `---` lines; an invalid one does not hide the next."""
    for number, line, part in split_yaml(text):
        if number > MAX_DOCUMENTS:
            yield Refusal(number, line, *TOO_MANY)
            return
        yield _yaml_document(part, number, line)


def split_yaml(text: str) -> Iterator[tuple[int, int, str]]:
    """The number, first line and text of each document that has content.

    A `---` at the start of a line ends a document everywhere, even in a block of text. So the text
    is cut there, and the parser starts again after an error.
    """
    starts = list(_markers(text))
    if not starts or not _NOTHING.match(text[: starts[0]]):
        starts.insert(0, 0)
    line, counted = 1, 0
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True), 1):
        line += text.count("\n", counted, start)
        counted = start
        part = text[start:end]
        if not _NOTHING.match(part.removeprefix("---")):
            yield number, line, part


def _markers(text: str) -> Iterator[int]:
    """The positions of lines that start with `---`; ten times as fast as an expression."""
    lines = "\n" + text
    at = lines.find("\n---")
    while at >= 0:
        if lines[at + 4 : at + 5] in ("", " ", "\t", "\r", "\n"):
            yield at
        at = lines.find("\n---", at + 1)


def _yaml_document(text: str, number: int, line: int) -> Document | Refusal:
    # Manifests need no directives, and libyaml takes minutes for a file full of them.
    if (directive := f"\n{text}".find("\n%")) >= 0:
        at = line + text.count("\n", 0, directive)
        return Refusal(number, at, "a YAML directive", "remove the line that starts with %")
    try:
        value = (builder := _Builder(text)).document()
    except RefusedError as refused:
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
    # After a first line of only `---` the document starts on the next line.
    blank = text.partition("\n")[0].rstrip() == "---"
    return Document(number, line + blank, value, builder.nodes, builder.text)


class _Builder:
    """Builds the value of one document from its events."""

    def __init__(self, text: str) -> None:
        self._next: Callable[[], Event | None] = CParser(text).get_event
        self._anchors: dict[str, tuple[Any, int, int]] = {}
        self.nodes = 0
        self.text = 0

    def document(self) -> Any:
        value = None
        while not isinstance(event := self._next(), StreamEndEvent | None):
            # At most once: the text was cut wherever another document can start.
            if isinstance(event, DocumentStartEvent):
                value = self._node(self._next(), 1)
        return value

    def _node(self, event: Event | None, depth: int) -> Any:
        nodes, text = self.nodes, self.text
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise RefusedError(_line(event), *TOO_LARGE)
        # Scalars first: they are four of five nodes.
        if isinstance(event, ScalarEvent):
            self.text += len(event.value)
            value = _scalar(event)
        elif isinstance(event, MappingStartEvent):
            value = self._mapping(event, depth)
        elif isinstance(event, SequenceStartEvent):
            value = self._sequence(event, depth)
        elif isinstance(event, AliasEvent):
            return self._alias(event)
        else:
            raise RefusedError(_line(event), "no content", "correct the syntax")
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, self.nodes - nodes, self.text - text)
        return value

    def _mapping(self, start: MappingStartEvent, depth: int) -> dict[str, Any]:
        _check_collection(start, depth)
        result: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while isinstance(event := self._next(), ScalarEvent):
            key = event.value
            self.text += len(key)
            if key in result:
                message = f"the key {quoted(key)} twice"
                raise RefusedError(_line(event), message, "keep one of the two")
            value = self._node(self._next(), depth + 1)
            if key == "<<" and event.implicit[0]:
                merged = _merge(value, _line(event)) | merged
            else:
                result[key] = value
        if not isinstance(event, MappingEndEvent):
            raise RefusedError(_line(event), "a key that is not text", "use a text as the key")
        return merged | result if merged else result

    def _sequence(self, start: SequenceStartEvent, depth: int) -> list[Any]:
        _check_collection(start, depth)
        result = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            result.append(self._node(event, depth + 1))
        return result

    def _alias(self, event: AliasEvent) -> Any:
        if event.anchor not in self._anchors:
            raise RefusedError(
                _line(event), f"*{event.anchor} stands for nothing", "define it before its use"
            )
        value, nodes, text = self._anchors[event.anchor]
        self.nodes += nodes
        self.text += text
        # Only aliases can make more text than the file has, whose size is limited.
        if self.nodes > MAX_NODES:
            raise RefusedError(_line(event), *TOO_LARGE)
        if self.text > MAX_TEXT:
            raise RefusedError(_line(event), *TOO_LONG)
        return value


def _check_collection(start: MappingStartEvent | SequenceStartEvent, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise RefusedError(_line(start), *TOO_DEEP)
    if start.tag is not None:
        raise RefusedError(_line(start), f"the tag {start.tag}", "remove it")


def _line(event: Event | None) -> int:
    mark = event.start_mark if event is not None else None
    return mark.line if mark is not None else 0


def _scalar(event: ScalarEvent) -> Any:
    if event.implicit[0]:
        text = event.value
        # Words first: most plain scalars are names, which one lookup decides.
        value = _WORDS.get(text, text)
        if value is text and text[0] in _NUMBER_START:
            return _number(text, event)
        return value
    if event.tag is not None and event.tag not in _TEXT_TAGS:
        raise RefusedError(_line(event), f"the tag {event.tag}", "remove it")
    return event.value


def _number(text: str, event: ScalarEvent) -> int | float | str:
    """The number of a plain scalar by Kubernetes' rules; the text if it is not a number."""
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
        raise RefusedError(_line(event), f"{quoted(text)} is no number in JSON", "quote it")
    return value


def _merge(value: Any, line: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for part in value if isinstance(value, list) else [value]:
        if not isinstance(part, dict):
            raise RefusedError(line, "`<<` with something that has no keys", "give it a mapping")
        result = part | result
    return result
