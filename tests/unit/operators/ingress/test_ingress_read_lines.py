"""The times of lines, as nodes write them: any zone, and any number of digits."""

import pytest

from quarterdeck.operators.ingress.read_lines import (
    KnownLines,
    Line,
    by_time,
    is_access_line,
    line_of,
    whole_second,
)


@pytest.mark.parametrize(
    ("time", "second"),
    [
        ("2026-11-17T20:21:54Z", "2026-11-17T20:21:54Z"),
        ("2026-11-17T20:21:54.999999999Z", "2026-11-17T20:21:54Z"),
        ("2026-11-17T22:21:54.5+02:00", "2026-11-17T20:21:54Z"),
        ("2026-11-17T23:59:59.1-01:00", "2026-11-18T00:59:59Z"),
    ],
)
def test_the_second_of_a_time(time: str, second: str) -> None:
    assert whole_second(time) == second


def test_lines_are_in_the_order_of_time_whatever_its_form() -> None:
    """Go leaves out zeros at the end, so a shorter fraction may be an earlier or a later time."""
    ordered = [
        "2026-11-17T20:21:53.999999999Z",
        "2026-11-17T20:21:54Z",
        "2026-11-17T20:21:54.02Z",
        "2026-11-17T22:21:54.020000001+02:00",
        "2026-11-17T20:21:54.1Z",
        "2026-11-17T20:21:55Z",
    ]
    lines = [Line(time, "pod", "text") for time in ordered]
    mixed = lines[1::2] + lines[::2]
    assert sorted(mixed, key=by_time) == lines


def test_only_lines_of_the_second_that_was_read_are_known() -> None:
    """A sidecar that runs anew has a log of its own, whose first line is a later one."""
    known = KnownLines("2026-11-17T20:21:54Z", 2)
    times = ["54.1Z", "54.2Z", "54.2Z", "55Z"]
    assert [known.has(f"2026-11-17T20:21:{it}") for it in times] == [True, True, False, False]
    anew = KnownLines("2026-11-17T20:21:54Z", 2)
    assert not anew.has("2026-11-17T20:21:55.3Z")
    assert not KnownLines("", 0).has("2026-11-17T20:21:54Z")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("rsyslogd 8.2302.0: running as pid 1", False),
        ("rsyslogd: activation of module imptcp failed", False),
        ('2026-11-17T20:21:54+00:00 router-a haproxy[14]: "GET /rsyslogd HTTP/1.1"', True),
    ],
)
def test_messages_of_rsyslog_are_no_access_lines(text: str, is_one: bool) -> None:
    assert is_access_line(Line("2026-11-17T20:21:54Z", "pod", text)) is is_one


@pytest.mark.parametrize(
    ("raw", "line"),
    [
        (b"2026-11-17T20:21:54Z a b", Line("2026-11-17T20:21:54Z", "pod", "a b")),
        (b"2026-11-17T20:21:54Z ", Line("2026-11-17T20:21:54Z", "pod", "")),
        (b"unable to retrieve container logs for containerd://abc", None),
        (b"\xff\xfe \x00", None),
        (b"2026-11-17T20:21:54Z", None),
        (b"", None),
    ],
)
def test_what_has_no_time_is_no_line(raw: bytes, line: Line | None) -> None:
    """The kubelet writes a message of its own when it has no log any more."""
    assert line_of(raw, "pod") == line
