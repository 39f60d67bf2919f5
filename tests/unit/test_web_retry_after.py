"""When a busy server wants to be asked again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.web import retry_after

NOW = "Wed, 18 Nov 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        (" 90 ", 90),
        ("999999999", 999_999_999),
        pytest.param("Wed, 18 Nov 2026 12:01:30 GMT", 90, id="a moment"),
        pytest.param("Wed, 18 Nov 2026 11:59:00 GMT", 0, id="a moment that is over"),
        pytest.param("Wed, 18 Nov 2026 13:01:30 +0100", 90, id="another zone"),
        pytest.param("", 0, id="nothing"),
        ("-1", 0),
        ("1e9", 0),
        ("tomorrow", 0),
        pytest.param("9" * 400, 0, id="beyond all"),
        pytest.param("\u0663", 0, id="digits of another script"),
    ],
)
def test_seconds_and_moments_are_known(text: str, seconds: float) -> None:
    assert retry_after({"Retry-After": text, "Date": NOW}) == seconds


def test_a_moment_counts_from_the_servers_own_time() -> None:
    assert retry_after({"Retry-After": NOW}) == 0
    late = {"Retry-After": "Wed, 18 Nov 1970 12:01:30 GMT", "Date": "Wed, 18 Nov 1970 12:00:00 GMT"}
    assert retry_after(late) == 90


@given(st.text(), st.text())
def test_whatever_a_server_says_it_is_a_number(asked: str, date: str) -> None:
    assert retry_after({"Retry-After": asked, "Date": date}) >= 0
    assert retry_after({"Retry-After": asked, "Date": NOW}) >= 0
