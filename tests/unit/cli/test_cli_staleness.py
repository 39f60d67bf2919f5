"""How explanations and probes look to people."""

from datetime import UTC, datetime, timedelta

import click
import pytest

from quarterdeck.cli.staleness_text import answers_as_data, answers_as_text, as_text
from quarterdeck.operators.staleness.decide import Case, CheckState, decide
from quarterdeck.operators.staleness.explain import (
    EXIT_CODES,
    StalenessExplanation,
    explanation,
)
from quarterdeck.operators.staleness.probe import Aftermath, ConditionAnswer
from quarterdeck.operators.staleness.published import AssumedSettings
from quarterdeck.status.staleness_marks import checking_message, verdict_message

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
WROTE = "2026-01-01T11:55:00Z"
ASSUMED = AssumedSettings(
    interval=timedelta(minutes=10), keep_upgradeable_false=False, source="the default"
)


def explained(
    message: str,
    manager: str = "dns-operator",
    now: datetime = NOW,
    *,
    dated: bool = True,
    wrote: str = WROTE,
    operation: str = "Update",
    owns: str = "f:message",
    status: str = "True",
) -> StalenessExplanation:
    owned: dict[str, object] = {
        "f:status": {"f:conditions": {'k:{"type":"Available"}': {owns: {}}}}
    }
    obj = {
        "metadata": {
            "name": "dns",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "managedFields": [
                {"manager": manager, "operation": operation, "time": wrote, "fieldsV1": owned}
            ],
        },
        "status": {"conditions": [{"type": "Available", "status": status, "message": message}]},
    }
    decision = decide(Case(object=obj, now=now, interval=ASSUMED.interval))
    return explanation("dns", decision, now, ASSUMED, None, dated=dated)


def test_a_live_operator_is_shown_with_what_comes_next() -> None:
    assert click.unstyle(as_text(explained("it works"))) == (
        "operator    dns\n"
        "state       alive\n"
        "last alive  2026-01-01T11:55:00Z (5m ago): a write by dns-operator\n"
        "interval    10m (the default)\n"
        "next        challenge at 2026-01-01T12:05:01Z, in 5m1s, unless it writes before\n"
        "\n"
        "CONDITION   STATUS   MARK   LAST TRANSITION   MESSAGE OF     ORIGINAL MESSAGE\n"
        "Available   True     -      -                 dns-operator   it works\n"
        "\n"
        "WRITER         OPERATION   LAST WRITE             PROVES LIFE   OWNS MESSAGES\n"
        "dns-operator   Update      2026-01-01T11:55:00Z   yes           Available"
    )


def test_a_challenge_is_shown_with_its_end() -> None:
    text = click.unstyle(as_text(explained(checking_message("it works"), "quarterdeck-staleness")))
    assert "state       challenged" in text
    assert "challenged  2026-01-01T11:55:00Z (5m ago)" in text
    assert "next        verdict at 2026-01-01T12:05:01Z, in 5m1s" in text
    assert "quarterdeck-staleness   Update      2026-01-01T11:55:00Z   no " in text


def test_a_verdict_is_shown_with_its_own_time() -> None:
    """The object no longer says when the operator was challenged."""
    verdict = verdict_message("it works", "True", 1200)
    found = explained(verdict, "quarterdeck-staleness", status="Unknown")
    text = click.unstyle(as_text(found))
    assert "state       stale" in text
    assert "verdict     2026-01-01T11:55:00Z (5m ago)" in text
    assert "challenged " not in text
    assert found.challenged_at is None


def test_what_is_due_says_so() -> None:
    text = click.unstyle(as_text(explained("it works", now=NOW + timedelta(hours=1))))
    assert "next        challenge now, if a checker runs" in text


def test_marks_that_are_not_the_checkers_are_counted_from_the_last_write() -> None:
    """An operator that has kept the prefix as its own."""
    text = click.unstyle(as_text(explained(checking_message("it works"))))
    assert "counted from  2026-01-01T12:05:00Z: the operator wrote, but left the messages" in text


def test_what_cannot_be_known_from_here_is_said() -> None:
    text = click.unstyle(as_text(explained("it works", dated=False)))
    assert "note        the object comes without managedFields" in text


def test_one_that_has_no_way_to_answer_is_explained_with_the_remedy() -> None:
    found = explained("", operation="Apply", owns="f:status")
    assert EXIT_CODES[CheckState(found.state)] == 0
    text = click.unstyle(as_text(found))
    assert "state       cannot be checked" in text
    assert "let it report a message, or let its Lease speak for it" in text


@pytest.mark.parametrize("wrote", ["2099-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
@pytest.mark.parametrize("message", ["it works", checking_message("it works")])
def test_times_in_the_future_are_shown_and_prove_nothing(message: str, wrote: str) -> None:
    """It ended with an error, and so with the exit code of a stale operator."""
    for manager in ("dns-operator", "quarterdeck-staleness"):
        found = explained(message, manager, wrote=wrote)
        assert EXIT_CODES[CheckState(found.state)] != 1
        lines = click.unstyle(as_text(found)).splitlines()
        (line,) = [one for one in lines if one.startswith(manager)]
        assert line.split()[2:4] == [wrote, "no"]


@pytest.mark.parametrize(
    ("seconds", "said", "slowest"),
    [
        pytest.param([0.004, 0.25], "dns answered in 250 ms", 0.25, id="quickly"),
        pytest.param([0.004, 12.34], "dns answered in 12.3 s", 12.34, id="in its own time"),
        pytest.param([0.004, None], "dns answered in part: not B within 30s", None, id="in part"),
        pytest.param([None, None], "dns did not answer within 30s", None, id="not at all"),
    ],
)
def test_an_answer_is_told(seconds: list[float | None], said: str, slowest: float | None) -> None:
    answers = [ConditionAnswer(kind, time) for kind, time in zip("AB", seconds, strict=True)]
    assert answers_as_text("dns", answers, 30).startswith(said)
    given_up = answers_as_text("dns", answers, 30, Aftermath.GIVEN_UP).splitlines()[0]
    assert ("given up by a checker meanwhile" in given_up) is (slowest is None)
    data = answers_as_data("dns", answers)
    assert (data["answered"], data["seconds"]) == (slowest is not None, slowest)


def test_what_a_writer_calls_itself_cannot_reach_the_terminal() -> None:
    text = as_text(explained("fine\x1b[2J\nforged", "me\x1b]0;x\x07\nforged"))
    assert "\x1b" not in click.unstyle(text)
    assert "forged" not in [line.split()[0] for line in text.splitlines() if line.split()]
