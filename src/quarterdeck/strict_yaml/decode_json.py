"""Decodes JSON text into documents; a file may have several values, one after another."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

from quarterdeck.strict_yaml.documents import (
    MAX_DEPTH,
    MAX_DOCUMENTS,
    MAX_NODES,
    TOO_DEEP,
    TOO_LARGE,
    TOO_MANY,
    Document,
    Refusal,
    RefusedError,
    quoted,
)

_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK = re.compile(r"[ \t\r\n]*")


def decode_json(text: str) -> Iterator[Document | Refusal]:
    """The JSON values of a text, in their order."""
    decoder = json.JSONDecoder(
        object_pairs_hook=_pairs, parse_constant=_no_constant, parse_float=_finite
    )
    at, number, line, counted = _skip_blank(text, 0), 0, 1, 0
    while at < len(text):
        number += 1
        line += text.count("\n", counted, at)
        counted = at
        if number > MAX_DOCUMENTS:
            yield Refusal(number, line, *TOO_MANY)
            return
        try:
            start = at
            value, at = decoder.raw_decode(text, at)
            nodes = _checked_nodes(value)
        except json.JSONDecodeError as error:
            yield Refusal(number, error.lineno, f"not JSON: {error.msg}", "correct the syntax")
            return
        except RecursionError:
            yield Refusal(number, line, *TOO_DEEP)
            return
        except RefusedError as refused:
            yield Refusal(number, line, refused.message, refused.remedy)
            return
        except ValueError as error:  # an integer of thousands of digits
            yield Refusal(number, line, f"not JSON: {error}", "quote the number")
            return
        yield Document(number, line, value, nodes, at - start)
        at = _skip_blank(text, at)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise RefusedError(0, f"the key {quoted(twice)} twice", "keep one of the two")
    return result


def _no_constant(name: str) -> None:
    raise RefusedError(0, f"{name} is no number in JSON", "quote it")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):  # it would be written as null
        raise RefusedError(0, f"{quoted(digits)} is too large for a number", "quote it")
    return value


def _checked_nodes(value: Any) -> int:
    """How many values it has; refused if too deep, too large or not valid Unicode."""
    nodes, depth, level = 0, 0, [value]
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if depth > MAX_DEPTH + 1:
            raise RefusedError(0, *TOO_DEEP)
        if nodes > MAX_NODES:
            raise RefusedError(0, *TOO_LARGE)
        keys = (key for node in level if isinstance(node, dict) for key in node)
        texts = (node for node in level if isinstance(node, str))
        # Most texts are ASCII, which Python knows of a text without looking through it.
        if any(not text.isascii() and _SURROGATE.search(text) for text in chain(texts, keys)):
            raise RefusedError(0, "half of a surrogate pair", "write the whole character")
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    return nodes


def _skip_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at
