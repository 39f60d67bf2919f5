"""The progress of a release: what one program writes, the others read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.status.release_progress import (
    MAX_LISTED,
    ReleaseProgress,
    listed,
    progress_in,
    progress_message,
)

NAMES = st.lists(
    st.from_regex(r"[a-z][a-z0-9-]{0,20}( [a-z]+/[a-z]+)?", fullmatch=True),
    max_size=MAX_LISTED,
    unique=True,
)


@given(
    done=st.integers(0, 10**9 - 1),
    total=st.integers(1, 10**9 - 1),
    names=NAMES,
    more=st.integers(0, 999),
)
def test_what_is_written_is_read(done: int, total: int, names: list[str], more: int) -> None:
    progress = ReleaseProgress(
        done=done, total=total, waiting=tuple(names), more=more if names else 0
    )
    assert progress_in(progress_message("1.2.3", progress)) == progress


@pytest.mark.parametrize(
    "message",
    [
        "",
        "Working towards 1.0.0",
        "Cluster version is 1.0.0",
        "34 of 48 done",
        f"Working towards 1.0.0: {'9' * 5000} of 1 done (1% complete)",
        "x Working towards 1.0.0: 1 of 2 done (50% complete)",
    ],
)
def test_a_message_without_progress_has_none(message: str) -> None:
    assert progress_in(message) is None


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    progress_in(f"Working towards 1.0.0: 1 of 2 done (50% complete), waiting on {text}")


def test_names_beyond_the_first_few_are_counted() -> None:
    assert listed([f"n{number}" for number in range(8)]) == "n0, n1, n2, n3, n4 and 3 more"
    found = progress_in("Working towards 1: 1 of 9 done (11% complete), waiting on a, b and 3 more")
    assert found == ReleaseProgress(done=1, total=9, waiting=("a", "b"), more=3)
