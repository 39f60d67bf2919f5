"""Versions are compared as semver.org says."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.versions import Version, parse_range, parse_version

# The order of precedence in the specification's own example, with a few more.
ASCENDING = [
    "0.9.9",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.0+build.7",
    "1.0.1",
    "1.2.0",
    "1.10.0",
    "2.0.0-0",
    "2.0.0",
]


def version(text: str) -> Version:
    parsed = parse_version(text)
    assert parsed is not None
    return parsed


def test_precedence() -> None:
    shuffled = ASCENDING[1::2] + ASCENDING[::2]
    assert sorted(shuffled, key=version) == ASCENDING
    for lower, higher in pairwise(ASCENDING):
        assert version(lower) < version(higher)
        assert not version(higher) < version(lower)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.2",
        "v1.2.3",
        "1.2.3.4",
        "01.2.3",
        "1.2.3-",
        "1.2.3-01",
        "1.2.3+",
        "1.2.3 ",
        "٣.1.1",
    ],
)
def test_what_is_no_version(text: str) -> None:
    assert parse_version(text) is None


def test_a_number_of_thousands_of_digits_is_no_version() -> None:
    assert parse_version("1." + "9" * 10_000 + ".0") is None


@given(st.text(alphabet="0123456789.-+ab", max_size=20))
def test_any_text_parses_or_not_and_equal_texts_are_equal(text: str) -> None:
    assert parse_version(text) == parse_version(text)


def test_a_patch_stays_on_its_line() -> None:
    assert version("1.2.3").line == version("1.2.4-rc.1").line == (1, 2)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        pytest.param(">=1.0.0 <1.2.0", ["1.0.0", "1.1.9", "1.2.0-rc.1"], ["0.9.9", "1.2.0"]),
        pytest.param(">= 1.0.0 < 1.2.0", ["1.1.0"], ["1.2.0"], id="blanks after the sign"),
        pytest.param("<1.0.0 || >2.0.0", ["0.1.0", "2.0.1"], ["1.0.0", "2.0.0"], id="either"),
        pytest.param("1.0.0", ["1.0.0", "1.0.0+build"], ["1.0.1"], id="no sign is equal"),
        pytest.param(">0.9.0 !1.0.0", ["1.0.1"], ["1.0.0"], id="all but one"),
        pytest.param("1.2.x", ["1.2.0", "1.2.9"], ["1.1.9", "1.3.0"], id="any patch"),
        pytest.param("=1.x", ["1.0.0", "1.9.9"], ["0.9.9", "2.0.0"], id="any minor"),
        pytest.param(">1.2.x", ["1.3.0"], ["1.2.9"], id="above all of a line"),
        pytest.param("<=1.x.x", ["0.1.0", "1.9.9"], ["2.0.0"], id="up to the end of a line"),
        pytest.param(">=1.2.x <2.x", ["1.2.0", "1.9.0"], ["1.1.9", "2.0.0"], id="between lines"),
    ],
)
def test_a_range_holds_what_its_comparisons_say(
    text: str, inside: list[str], outside: list[str]
) -> None:
    found = parse_range(text)
    assert found is not None
    assert [v for v in (*inside, *outside) if version(v) in found] == inside


NO_RANGES = ("", "||", "1.0.0 ||", "~1.0.0", ">=", "1.0", "x" * 2000, ">=1 <", "x", "1.x.2", "!1.x")


@pytest.mark.parametrize("text", NO_RANGES)
def test_what_is_no_range_is_told(text: str) -> None:
    assert parse_range(text) is None
