"""Text to documents: values, places, and what is refused."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.strict_yaml import decode_json, decode_yaml
from quarterdeck.strict_yaml.documents import (
    MAX_DEPTH,
    MAX_DOCUMENTS,
    Document,
    Refusal,
)

Decode = Callable[[str], Iterator[Document | Refusal]]


def values(text: str, decode: Decode = decode_yaml) -> list[Any]:
    documents = list(decode(text))
    assert all(isinstance(document, Document) for document in documents), documents
    return [document.value for document in documents if isinstance(document, Document)]


def refusals(text: str, decode: Decode = decode_yaml) -> list[Refusal]:
    return [document for document in decode(text) if isinstance(document, Refusal)]


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        pytest.param("true", True, id="true is a boolean"),
        pytest.param("off", False, id="off is a boolean, as kubectl takes it"),
        pytest.param("y", "y", id="y is text"),
        pytest.param("~", None, id="a tilde is null"),
        pytest.param("", None, id="nothing is null"),
        pytest.param("420", 420, id="digits are an integer"),
        pytest.param("0644", 420, id="a leading zero is octal, as file modes need it"),
        pytest.param("0o644", 420, id="0o is octal"),
        pytest.param("-0x1F", -31, id="0x is hexadecimal"),
        pytest.param("0b101", 5, id="0b is binary"),
        pytest.param("0x_", "0x_", id="a prefix without digits is text"),
        pytest.param("1_000", 1000, id="underscores group digits"),
        pytest.param("0888", 888.0, id="a leading zero without octal digits is a float"),
        pytest.param("1e3", 1000.0, id="an exponent makes a float"),
        pytest.param("-.5", -0.5, id="a float needs no leading zero"),
        pytest.param("9" * 25, 1e25, id="an integer beyond 64 bits is a float"),
        pytest.param("1:30", "1:30", id="base 60 is text"),
        pytest.param("2020-01-02", "2020-01-02", id="a date is text"),
        pytest.param("4.6.1", "4.6.1", id="a version is text"),
        pytest.param("10.0.0.0/16", "10.0.0.0/16", id="a network is text"),
        pytest.param('"true"', "true", id="quoted is text"),
        pytest.param("!!str 12", "12", id="tagged as text is text"),
    ],
)
def test_scalar(plain: str, value: object) -> None:
    (found,) = values(f"a: {plain}\n")
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


def test_documents_are_numbered_and_placed() -> None:
    """Numbers count `---` parts, empty ones too; a line is where the content starts."""
    text = "# head\n---\na: 1\n---\n# empty\n---\n\nb: 2\n--- {c: 3}\n"
    assert list(decode_yaml(text)) == [
        Document(1, 3, {"a": 1}, nodes=2, text=2),
        Document(3, 7, {"b": 2}, nodes=2, text=2),
        Document(4, 9, {"c": 3}, nodes=2, text=2),
    ]


def test_what_an_alias_stands_for_counts_at_each_use() -> None:
    (document,) = decode_yaml("a: &a [one, two]\nb: [*a, *a]\n")
    assert isinstance(document, Document)
    assert (document.nodes, document.text) == (13, 20)


def test_a_file_may_start_without_a_marker() -> None:
    assert [(d.number, d.line) for d in decode_yaml("a: 1\n---\nb: 2\n")] == [(1, 1), (2, 3)]


def test_a_bad_document_does_not_hide_the_next() -> None:
    text = "a: 1\n---\nb: [\n---\nc: 3\n---\nd: 1\nd: 2\n"
    documents = list(decode_yaml(text))
    assert [type(document) for document in documents] == [Document, Refusal, Document, Refusal]
    first, second = refusals(text)
    assert (first.number, second.number, second.line) == (2, 4, 8)
    assert "'d' twice" in second.message


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param("a: 1\nb: 'x\n", 3, "quoted scalar", id="a quote that does not end"),
        pytest.param("a: 1\n\tb: 2\n", 2, "tab character", id="a tab as indentation"),
        pytest.param("a: {b: 1,\n b: 2}\n", 2, "'b' twice", id="a repeated key, deep down"),
        pytest.param("a: 1\n? [x]\n: 2\n", 2, "not text", id="a list as a key"),
        pytest.param("a: *x\n", 1, "stands for nothing", id="an alias of nothing"),
        pytest.param("a: &x [*x]\n", 1, "stands for nothing", id="an alias of itself"),
        pytest.param("a: .inf\n", 1, "no number in JSON", id="infinity"),
        pytest.param("a: 1e999\n", 1, "no number in JSON", id="a number beyond all floats"),
        pytest.param("a: !!python/object:os.system x\n", 1, "the tag", id="a tag of Python"),
        pytest.param("a: !!set {x}\n", 1, "the tag", id="a tag on a mapping"),
        pytest.param("%YAML 1.2\n---\na: 1\n", 1, "directive", id="a directive"),
        pytest.param("a: 1\n...\nb: 2\n", 3, "document start", id="a document after dots"),
        pytest.param("a: 1\nb: \x00\n", 2, "control characters", id="a NUL"),
        pytest.param("a: 1\n<<: 3\n", 2, "no keys", id="merging a number"),
        pytest.param("a: " + "[" * (MAX_DEPTH + 1), 1, "deep", id="deep nesting"),
    ],
)
def test_refused_yaml(text: str, line: int, message: str) -> None:
    refused = refusals(text)[0]
    assert refused.line == line
    assert message in refused.message
    assert refused.remedy


def test_aliases_and_merge_keys_give_their_values() -> None:
    text = "base: &base {x: 1, y: 2}\nuse:\n  <<: *base\n  y: 3\nlist: [*base]\n"
    base = {"x": 1, "y": 2}
    assert values(text) == [{"base": base, "use": {"x": 1, "y": 3}, "list": [base]}]


def test_a_bomb_of_aliases_is_refused() -> None:
    """Ten to the ninth values in under 500 bytes."""
    lines = ["a: &a [" + ", ".join("x" * 10) + "]"]
    for name, before in zip("bcdefghi", "abcdefgh", strict=True):
        lines.append(f"{name}: &{name} [" + ", ".join([f"*{before}"] * 10) + "]")
    (refused,) = refusals("\n".join(lines))
    assert "aliases expanded" in refused.message


def test_a_bomb_of_long_texts_is_refused() -> None:
    """Four thousand aliases of one megabyte: few values, and gigabytes once they are written."""
    aliases = "".join(f"k{number}: *a\n" for number in range(4000))
    (refused,) = refusals(f"a: &a {'x' * 1_000_000}\n{aliases}")
    assert "MiB of text, aliases expanded" in refused.message
    assert refused.line == 9


def test_a_bomb_of_long_keys_is_refused() -> None:
    """In a mapping that is used again and again, the keys count too."""
    aliases = ", ".join(["*a"] * 9000)
    (refused,) = refusals(f"a: &a {{{'k' * 1000}: 1}}\nb: [{aliases}]\n")
    assert "MiB of text, aliases expanded" in refused.message


def test_too_many_documents_end_the_file() -> None:
    documents = list(decode_yaml("---\na: 1\n" * (MAX_DOCUMENTS + 5)))
    assert len(documents) == MAX_DOCUMENTS + 1
    assert isinstance(documents[-1], Refusal)


def test_json_documents_follow_one_another() -> None:
    documents = list(decode_json('\n{"a": 1}\n{"b": [true, null]}\n'))
    assert documents == [
        Document(1, 2, {"a": 1}, nodes=2, text=8),
        Document(2, 3, {"b": [True, None]}, nodes=4, text=19),
    ]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        pytest.param('{"a": 1}\n{"b": }', 2, "not JSON", id="a syntax error"),
        pytest.param('{"a": 1, "a": 2}', 1, "'a' twice", id="a repeated key"),
        pytest.param('{"a": NaN}', 1, "no number", id="not a number"),
        pytest.param('{"a": ' + "1" * 5000 + "}", 1, "not JSON", id="thousands of digits"),
        pytest.param("[" * 100_000, 1, "deep", id="deep nesting, not closed"),
        pytest.param("[" * 150 + "]" * 150, 1, "deep", id="deep nesting, closed"),
        pytest.param('{"a": "\\ud800"}', 1, "surrogate", id="half a character"),
        pytest.param('{"\\ud800": "a"}', 1, "surrogate", id="half a character in a key"),
        pytest.param('{"a": -1e999}', 1, "too large", id="a number that is infinite"),
        pytest.param("[" + "1," * 200_000 + "1]", 1, "more than", id="too many values"),
        pytest.param("{}" * 2000, 1, "documents", id="too many documents"),
    ],
)
def test_refused_json(text: str, line: int, message: str) -> None:
    refused = refusals(text, decode_json)[-1]
    assert refused.line == line
    assert message in refused.message


# PyYAML takes `0E0` and `1e5` for text, and writes them without quotes; Kubernetes reads numbers.
texts = st.text(max_size=20).filter(lambda text: re.match(r"[-+]?[0-9.]+[eE]", text) is None)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_what_pyyaml_writes_is_read_back(value: dict[str, Any]) -> None:
    text = yaml.dump(value, Dumper=yaml.CSafeDumper, allow_unicode=True)
    assert values(text) == [value]


@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_json_is_read_back(value: dict[str, Any]) -> None:
    assert values(json.dumps(value), decode_json) == [value]


@given(st.text(alphabet="ab:-[]{}&*!|>%'\"#, \n0.~<", max_size=80))
def test_any_text_gives_documents_or_refusals(text: str) -> None:
    """No input raises, and numbers and lines grow from document to document."""
    documents = list(decode_yaml(text))
    numbers = [document.number for document in documents]
    assert numbers == sorted(set(numbers))
    assert all(1 <= document.line <= text.count("\n") + 2 for document in documents)
