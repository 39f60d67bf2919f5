"""How cluster operators are shown."""

from datetime import UTC, datetime
from typing import Any

import click

from quarterdeck.cli.operators_text import as_data, as_detail, as_table
from quarterdeck.status.health import health_of
from quarterdeck.status.staleness_marks import checking_message, verdict_message

NOW = datetime(2026, 1, 1, 2, 0, 5, tzinfo=UTC)
SINCE = "2026-01-01T00:00:00Z"


def condition(type_: str, status: str, message: str = "") -> dict[str, Any]:
    return {
        "type": type_,
        "status": status,
        "reason": "Because",
        "message": message,
        "lastTransitionTime": SINCE,
    }


def operator(name: str, *conditions: dict[str, Any], **status: Any) -> dict[str, Any]:
    well = {
        "Available": condition("Available", "True", "all is well"),
        "Progressing": condition("Progressing", "False"),
        "Degraded": condition("Degraded", "False"),
    }
    for one in conditions:
        well[one["type"]] = one
    return {"metadata": {"name": name}, "status": {"conditions": list(well.values()), **status}}


STALE = operator(
    "silent",
    *(
        condition(type_, "Unknown", verdict_message("m", was, 120))
        for type_, was in (("Available", "True"), ("Progressing", "False"), ("Degraded", "False"))
    ),
)


def shown(*operators: dict[str, Any], width: int | None = None) -> list[str]:
    text = as_table([health_of(one) for one in operators], NOW, width)
    return click.unstyle(text).splitlines()


def test_the_table_has_a_line_for_each() -> None:
    versions = [{"name": "operand", "version": "9"}, {"name": "operator", "version": "4.7.0"}]
    ill = condition("Degraded", "True", "first line\n\nsecond line")
    assert shown(operator("a", ill), operator("b", versions=versions)) == [
        "NAME   VERSION   AVAILABLE   PROGRESSING   DEGRADED   SINCE   MESSAGE",
        "a      -         True        False         True       2h5s    first line; second line",
        "b      4.7.0     True        False         False      2h5s    all is well",
    ]


def test_stale_disabled_and_checked_ones_are_marked_by_words_too() -> None:
    disabled = operator("off", condition("Disabled", "True", "Nothing to do"))
    asked = operator("asked", condition("Available", "True", checking_message("fine")))
    lines = shown(STALE, asked, disabled)
    assert lines[1].startswith("silent (stale) ")
    assert lines[1].endswith(
        "no sign of life for more than 2 minutes; "
        "last known: Available=True, Progressing=False, Degraded=False"
    )
    assert lines[2].startswith("asked (being checked) ")
    assert lines[2].endswith(" fine")
    assert lines[3].startswith("off (disabled) ")
    assert lines[3].endswith(" Nothing to do")


def test_a_disabled_one_is_grey_from_end_to_end() -> None:
    off = health_of(operator("off", condition("Disabled", "True", "Nothing to do")))
    line = as_table([off], NOW).splitlines()[1]
    assert line.startswith(click.style("off (disabled)", fg="bright_black"))
    assert click.style("Nothing to do", fg="bright_black") in line


def test_messages_are_cut_to_the_terminal_and_nowhere_else() -> None:
    talkative = operator("a", condition("Available", "True", "word " * 100))
    assert len(shown(talkative)[1]) > 400
    cut = shown(talkative, width=100)
    assert max(map(len, cut)) <= 100
    assert cut[1].endswith("…")
    assert "word word" in shown(talkative, width=10)[1], "a narrow terminal wraps"


def test_one_that_has_said_nothing_is_shown() -> None:
    (_, line) = shown({"metadata": {"name": "new"}})
    assert line.split() == ["new", "-", "-", "-", "-", "-", *["has", "not", "reported", "anything"]]


def test_the_detail_has_everything() -> None:
    related = [
        {"group": "", "resource": "namespaces", "name": "home"},
        {"group": "apps", "resource": "deployments", "namespace": "home", "name": "x"},
        {"group": "g", "resource": "things", "name": ""},
    ]
    versions = [{"name": "operator", "version": "4.7.0"}]
    ill = condition("Degraded", "True", "first\nsecond")
    obj = operator("a", ill, versions=versions, relatedObjects=related)
    assert click.unstyle(as_detail(health_of(obj), NOW)) == "\n".join(
        [
            "operator             a",
            "state                degraded",
            "version of operator  4.7.0",
            "",
            "Available=True for 2h5s (Because)",
            "  all is well",
            "",
            "Progressing=False for 2h5s (Because)",
            "",
            "Degraded=True for 2h5s (Because)",
            "  first",
            "  second",
            "",
            "related objects",
            "  namespaces home",
            "  deployments.apps x in home",
            "  things.g (all)",
        ]
    )


def test_the_detail_of_a_stale_one_says_what_was_last_known() -> None:
    text = click.unstyle(as_detail(health_of(STALE), NOW))
    assert "Available=Unknown for 2h5s, last known True (Because)\n  m" in text


def test_programs_get_the_judgement_and_the_operators_own_words() -> None:
    data = as_data(health_of(STALE))
    assert (data["name"], data["state"], data["checking"]) == ("silent", "stale", False)
    assert data["conditions"][0] == {
        "type": "Available",
        "status": "Unknown",
        "lastKnown": "True",
        "reason": "Because",
        "message": "m",
        "since": SINCE,
        "mark": "stale",
        "silence": "2 minutes",
    }


def test_what_an_operator_says_cannot_reach_the_terminal_or_forge_a_row() -> None:
    """Also colours: only what this program adds is obeyed."""
    evil = "fine\x1b]52;c;Zm9v\x07\x1b[31m\nother   4.7   True"
    versions = [{"name": "operator\nx", "version": "\x1b[2J"}]
    said = condition("Available", "True", evil) | {"reason": "A\nB", "type": "Available"}
    health = health_of(operator("a\x1b[8m", said, versions=versions))
    for text in (as_table([health], NOW), as_detail(health, NOW)):
        assert "\x1b" not in text
    assert len(as_table([health], NOW).splitlines()) == 2
    assert "A\\nB" in as_detail(health, NOW)


def test_one_that_has_no_way_to_answer_is_marked() -> None:
    obj = operator("mute")
    types = [one["type"] for one in obj["status"]["conditions"]]
    owned: dict[str, object] = {f'k:{{"type":"{kind}"}}': {"f:status": {}} for kind in types}
    entry = {"operation": "Apply", "fieldsV1": {"f:status": {"f:conditions": owned}}}
    obj["metadata"]["managedFields"] = [entry]
    assert shown(obj)[1].startswith("mute (cannot be checked) ")
    assert "it applies no messages" in as_detail(health_of(obj), NOW)
