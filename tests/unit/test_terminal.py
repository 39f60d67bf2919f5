"""What others wrote is shown, and never obeyed by a terminal."""

import io
import logging
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
