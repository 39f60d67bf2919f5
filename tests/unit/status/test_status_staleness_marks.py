"""The texts of the staleness challenge and verdict: written, recognised, taken off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.status.staleness_marks import (
    CHECKING_PREFIX,
    checking_message,
    is_checking,
    is_marked,
    is_verdict,
    original,
    recorded_silence,
    recorded_status,
    verdict_message,
)

TRIMMED = CHECKING_PREFIX.rstrip()
VERDICT = verdict_message("", "False", 1200)

statuses = st.sampled_from(["True", "False", "Unknown"])
intervals = st.floats(min_value=0, max_value=1e6)
plain = st.one_of(
    st.sampled_from(["", " ", "\n", "all is well", "two\nlines", 'a "quoted" word', TRIMMED[:-1]]),
    st.text(max_size=40),
).filter(lambda text: original(text) == text)
marks = st.one_of(
    st.just(checking_message),
    st.builds(
        lambda status, seconds: lambda text: verdict_message(text, status, seconds),
        statuses,
        intervals,
    ),
    st.just(lambda text: CHECKING_PREFIX + text),
    st.just(lambda text: VERDICT + text),
)


@st.composite
def messages(draw: st.DrawFn) -> str:
    """Any text with any number of our own texts before it, nested by whoever."""
    text: str = draw(plain)
    for mark in draw(st.lists(marks, max_size=4)):
        text = mark(text)
    return text


def test_the_texts_are_the_documents_to_the_letter() -> None:
    assert checking_message("All is well") == (
        "Operator checking for stale status, the active operator will reset this message: "
        "All is well"
    )
    assert verdict_message("All is well", "True", 20 * 60) == (
        "Operator has not updated this condition for more than 20 minutes, "
        'last known condition state was "True", original message: All is well'
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        pytest.param(1200, "20 minutes", id="the default"),
        pytest.param(120, "2 minutes", id="whole minutes"),
        pytest.param(60, "1 minute", id="one minute"),
        pytest.param(12, "12 seconds", id="seconds"),
        pytest.param(90, "90 seconds", id="no whole minutes"),
        pytest.param(1, "1 second", id="one second"),
        pytest.param(2.9, "2 seconds", id="rounded down, so that more than that is true"),
        pytest.param(0.5, "0 seconds", id="less than a second"),
    ],
)
def test_a_verdict_says_its_interval(seconds: float, said: str) -> None:
    text = verdict_message("m", "True", seconds)
    assert f"for more than {said}, last" in text
    assert recorded_silence(text) == said
    assert is_verdict("Unknown", text)


@given(messages())
def test_a_challenge_is_recognised_and_keeps_the_original(message: str) -> None:
    challenged = checking_message(message)
    assert is_checking(challenged)
    assert original(challenged) == original(message)
    assert recorded_status(challenged) is None


@given(messages(), statuses, intervals)
def test_a_verdict_is_recognised_and_keeps_status_and_original(
    message: str, status: str, seconds: float
) -> None:
    verdict = verdict_message(message, status, seconds)
    assert is_verdict("Unknown", verdict)
    assert not is_checking(verdict)
    assert original(verdict) == original(message)
    assert recorded_status(verdict) == status


@given(messages())
def test_no_mark_is_ever_written_before_another(message: str) -> None:
    once = checking_message(message)
    assert checking_message(once) == once
    assert once.removeprefix(CHECKING_PREFIX) == original(message)
    verdict = verdict_message(once, "True", 1200)
    assert verdict_message(verdict, "True", 1200) == verdict
    assert checking_message(verdict) == once


@given(messages())
def test_an_original_has_no_mark_left(message: str) -> None:
    assert original(original(message)) == original(message)
    assert not is_marked("Unknown", original(message))
    assert message.endswith(original(message))


@given(plain)
def test_what_nobody_marked_is_left_alone(message: str) -> None:
    assert original(message) == message
    assert recorded_status(message) is None


@given(messages())
def test_the_verdict_text_alone_is_none_while_the_status_is_known(message: str) -> None:
    verdict = verdict_message(message, "True", 1200)
    assert not is_verdict("True", verdict)
    assert not is_marked("False", verdict)


def test_a_prefix_whose_last_blank_was_trimmed_is_still_one() -> None:
    assert is_checking(TRIMMED)
    assert original(TRIMMED) == ""
    assert original(VERDICT.rstrip()) == ""
    assert is_verdict("Unknown", VERDICT.rstrip())


def test_a_mark_in_the_middle_is_the_operators_own_text() -> None:
    message = f"Router: {CHECKING_PREFIX}x"
    assert not is_checking(message)
    assert original(message) == message
