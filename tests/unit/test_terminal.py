"""What others wrote is shown, and never obeyed by a terminal."""

import io
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck import log as logs
from quarterdeck.cli.output import CommandFailed, Output, output_option, show, table
from quarterdeck.terminal import cut, visible, wants_colours, width

CLIPBOARD = "\x1b]52;c;cm0gLXJmIC8=\x07"
TITLE = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J\x1b[H"
HOSTILE = [CLIPBOARD, TITLE, CLEAR, "\x9b31m", "a\rb", "a\x08b", "\u202egnp.exe", "a\x7f", "\u2028"]


@pytest.mark.parametrize("text", HOSTILE)
def test_control_characters_are_shown_as_escapes(text: str) -> None:
    shown = visible(f"before {text} after")
    assert shown.isprintable()
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_ordinary_text_stays_as_it_is() -> None:
    assert visible("all is well: größer, 日本語, 🚢") == "all is well: größer, 日本語, 🚢"
    assert visible("two\nlines") == "two\\nlines"
    assert visible("two\nlines\t", lines=True) == "two\nlines\\t"


@pytest.mark.parametrize("blank", ["\u3164", "\u2800", "\u115f", "\u034f", "\u17b4"])
def test_what_cannot_be_seen_is_shown_as_an_escape(blank: str) -> None:
    """Printable, says Unicode; but it makes a name look like another one."""
    assert visible(f"dns{blank}") == f"dns\\u{ord(blank):04x}"


def test_marks_are_not_heaped_upon_a_letter() -> None:
    """They have no width, so a table would not cut them, and they cover the lines around."""
    assert visible("e\u0301a\u0308\u0304") == "e\u0301a\u0308\u0304"
    assert visible("e" + "\u0301" * 6) == "e" + "\u0301" * 4 + "\\u0301" * 2
    assert width("\u2764\ufe0f") == 1, "a variation selector has no width"


@given(st.text())
def test_whatever_is_said_a_terminal_gets_nothing_to_obey(text: str) -> None:
    assert visible(text).isprintable()
    assert all(line.isprintable() for line in visible(text, lines=True).split("\n"))


def test_no_cell_forges_a_row_or_reaches_the_terminal() -> None:
    shown = table(["NAME", "MESSAGE"], [["dns", f"fine{CLIPBOARD}\netcd   fine"]])
    assert len(shown.splitlines()) == 2
    assert "\x1b" not in shown


def test_our_own_colours_get_through() -> None:
    shown = table(["NAME"], [[click.style("dns", fg="red")]])
    assert click.style("dns", fg="red") in shown


def test_everything_that_a_command_shows_is_visible() -> None:
    @click.command()
    @output_option
    def example(output: Output) -> None:
        show({"message": CLEAR}, output, lambda: f"first\n{CLEAR}second")

    for form in ("table", "json", "yaml"):
        told = CliRunner().invoke(example, ["--output", form], color=True).output
        assert "\x1b" not in told
    assert "\x1b" not in CommandFailed(f"no {TITLE}").message


def test_wide_characters_take_two_columns() -> None:
    assert [width(text) for text in ("dns", "日本", "e\u0301", "🚢")] == [3, 4, 1, 2]
    lines = table(["A", "B"], [["日本", "x"], ["ab", "y"]]).splitlines()
    assert lines == ["A      B", "日本   x", "ab     y"]


@pytest.mark.parametrize(("columns", "shown"), [(4, "日…"), (6, "日本語"), (5, "日本…")])
def test_text_is_cut_by_columns(columns: int, shown: str) -> None:
    assert cut("日本語", columns) == shown


@pytest.mark.parametrize("columns", [60, 72, 80, 100, 200])
def test_tables_fit_the_terminal(columns: int) -> None:
    header = ["NAME", "VERSION", "AVAILABLE", "PROGRESSING", "DEGRADED", "SINCE", "MESSAGE"]
    name = click.style("kube-controller-manager (being checked)", fg="red")
    row = [name, "4.20.0-rc.1", "True", "False", "False", "23d4h", "日本語 " * 40]
    lines = click.unstyle(table(header, [row], columns)).splitlines()
    assert max(width(line) for line in lines) <= columns
    assert all("…" in line for line in lines[1:])


@pytest.mark.parametrize(
    ("environ", "terminal", "expected"),
    [
        pytest.param({"TERM": "xterm"}, True, True, id="a terminal"),
        pytest.param({"TERM": "xterm"}, False, False, id="a file"),
        pytest.param({"TERM": "xterm", "NO_COLOR": "1"}, True, False, id="NO_COLOR"),
        pytest.param({"TERM": "xterm", "NO_COLOR": ""}, True, True, id="an empty NO_COLOR"),
        pytest.param({"TERM": "dumb"}, True, False, id="TERM=dumb"),
    ],
)
def test_colours_only_where_they_are_wanted(
    environ: dict[str, str], terminal: bool, expected: bool
) -> None:
    assert wants_colours(environ, terminal=terminal) is expected


class Terminal(io.StringIO):
    """A stream that click takes for a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_errors_have_colours_only_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """They are shown when click has left the command, and what it knew about colours."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    painted, plain = Terminal(), Terminal()
    CommandFailed("no").show(painted)
    assert painted.getvalue() == f"{click.style('error:', fg='red')} no\n"
    monkeypatch.setenv(name, value)
    CommandFailed("no").show(plain)
    assert plain.getvalue() == "error: no\n"


SHOWS = """
import click
from quarterdeck.cli.output import show
click.command()(lambda: show('it', 'table', lambda: 'it' * 100_000))()
"""


@pytest.mark.parametrize(
    ("file", "code", "said"),
    [
        pytest.param(
            *("/dev/full", 2, "error: standard output: No space left on device\n"),
            id="a full disk",
        ),
        pytest.param(None, 141, "", id="a reader that has seen enough"),
    ],
)
def test_what_cannot_be_written_has_no_exit_code_of_another_meaning(
    file: str | None, code: int, said: str
) -> None:
    """1 would say that an operator is not well."""
    reading, writing = os.pipe()
    os.close(reading)
    target = os.open(file, os.O_WRONLY) if file else os.dup(writing)
    try:
        done = subprocess.run(
            [sys.executable, "-c", SHOWS], stdout=target, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)
        os.close(target)
    assert done.stderr.decode() == said
    assert done.returncode == code


@pytest.fixture
def _log_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    before = (logs._Output.verbosity, logs._Output.stream, logs._Output.processors)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logs._Output.verbosity, logs._Output.stream, logs._Output.processors = before


@pytest.mark.usefixtures("_log_restored")
def test_text_logs_show_what_others_wrote() -> None:
    """One line each, whatever the fields say; a traceback keeps its lines."""
    stream = io.StringIO()
    logs.configure(fmt="text", stream=stream)
    logs.get_logger("x").info("operator recovered", by=f"a write by {TITLE}\nforged line")
    logging.getLogger("library").warning("said %s", CLIPBOARD)
    told = stream.getvalue()
    assert "\x1b" not in told
    assert len(told.splitlines()) == 2
    try:
        raise ValueError("no")
    except ValueError:
        logs.get_logger("x").exception("failed")
    assert "Traceback" in stream.getvalue()
    assert len(stream.getvalue().splitlines()) > 4
