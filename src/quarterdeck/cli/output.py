"""Output of all commands: `-o`, tables for people, data for programs, errors in one line.

All text for people goes through `show`, `table` and `CommandFailed`, which escape control
characters, whoever wrote them.
"""

import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Literal, TypeVar

import click
import msgspec

from quarterdeck.cli.cluster import with_kubectl
from quarterdeck.terminal import cut, visible, wants_colours, width

Output = Literal["table", "json", "yaml"]
Command = TypeVar("Command", bound=Callable[..., Any])

Struct = TypeVar("Struct", bound=msgspec.Struct)

NARROWEST = 60
"""The terminal width below which lines may wrap."""
NARROWEST_LAST = 20
"""The least width of a table's last column before other columns are cut."""
_STYLE = re.compile(r"\x1b\[(?:[012]|3[1-6]|90)m")
"""The colours and weights that commands use."""
_LINES = frozenset({"message", "originalMessage"})
"""The fields whose text may have several lines."""

EXIT_CANNOT = 2
"""The exit code if the machine or the cluster does not allow the command."""


class CommandFailed(click.ClickException):
    """Ends a command with one line on standard error."""

    exit_code = EXIT_CANNOT

    def __init__(self, message: str) -> None:
        super().__init__(visible(with_kubectl(" ".join(message.split()))))

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the line, in colour where that is wanted: click no longer knows by then."""
        colour = None if wants_colours(os.environ, terminal=True) else False
        line = f"{click.style('error:', fg='red')} {self.message}"
        click.echo(line, file=file or sys.stderr, color=colour)


def output_option(command: Command) -> Command:
    """Add the option `-o`; the command gets it as the parameter `output`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json", "yaml"]),
        default="table",
        show_default=True,
        help="The format of the output.",
    )(command)


def show(data: Any, output: Output, as_text: Callable[[], str]) -> None:
    """Print data in the requested form; `as_text` returns the form for people."""
    match output:
        case "json":
            import json

            _print(json.dumps(data, indent=2))
        case "yaml":
            import yaml

            _print(yaml.safe_dump(data, sort_keys=False), nl=False)
        case "table":
            _print(_safe(as_text(), lines=True))


def _print(text: str, *, nl: bool = True) -> None:
    """Write to standard output; who cannot do so ends with no exit code that says something else.

    A reader that has seen enough, like `head`, ends the command as SIGPIPE would.
    """
    try:
        click.echo(text, nl=nl)
    except OSError as error:
        # Python tries once more at the end, and would fail once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            sys.exit(128 + signal.SIGPIPE)
        raise CommandFailed(f"standard output: {error.strerror}") from None


def readable(value: Struct) -> Struct:
    """The value with control characters in its texts escaped; messages keep their lines.

    Call it for texts of others before adding our own colours.
    """
    data = _walk(msgspec.to_builtins(value), lines=False)
    return msgspec.convert(data, type(value))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], columns: int | None = None) -> str:
    """A table like kubectl's: columns as wide as their widest cell, three blanks apart.

    On a terminal, or with `columns`, cells are cut so that lines do not wrap, down to 60 columns.
    """
    lines = [[_safe(cell) for cell in line] for line in (header, *rows)]
    plain = [[click.unstyle(cell) for cell in line] for line in lines]
    widths = [max(width(line[column]) for line in plain) for column in range(len(header))]
    gap = 3
    limit = columns or terminal_columns()
    if limit is not None:
        widths, gap = _fitted(widths, max(limit, NARROWEST))
    return "\n".join(
        (" " * gap)
        .join(_cell(cell, room) for cell, room in zip(line, widths, strict=True))
        .rstrip()
        for line in lines
    )


def terminal_columns() -> int | None:
    """The width of the terminal; None if the output is no terminal."""
    # Python has no standard output at all where its file descriptor is closed.
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if is_terminal else None


def _fitted(widths: Sequence[int], limit: int) -> tuple[list[int], int]:
    """The widths of the columns and of the gaps, so that a line fits.

    The last column is cut first; if that is not enough, the widest column is.
    """
    fitted = list(widths)
    room = limit - sum(fitted[:-1]) - 3 * (len(fitted) - 1)
    if room >= min(fitted[-1], NARROWEST_LAST):
        return [*fitted[:-1], min(fitted[-1], room)], 3
    while sum(fitted) + len(fitted) - 1 > limit and max(fitted) > 1:
        fitted[fitted.index(max(fitted))] -= 1
    return fitted, 1


def _cell(cell: str, room: int) -> str:
    """The cell padded or cut to a width, in its colour."""
    bare = click.unstyle(cell)
    if width(bare) <= room:
        return cell + " " * (room - width(bare))
    shown = cut(bare, room)
    opening = re.match(f"(?:{_STYLE.pattern})*", cell)
    before = opening[0] if opening else ""
    return f"{before}{shown}{click.style('') if before else ''}" + " " * (room - width(shown))


def _safe(text: str, *, lines: bool = False) -> str:
    """The text with our own colours, and other control characters escaped."""
    parts: list[str] = []
    end = 0
    for style in _STYLE.finditer(text):
        parts += [visible(text[end : style.start()], lines=lines), style[0]]
        end = style.end()
    return "".join([*parts, visible(text[end:], lines=lines)])


def _walk(data: Any, *, lines: bool) -> Any:
    match data:
        case str():
            return visible(data, lines=lines)
        case dict():
            return {_walk(k, lines=False): _walk(v, lines=k in _LINES) for k, v in data.items()}
        case list() | tuple():
            return [_walk(one, lines=lines) for one in data]
        case _:
            return data


@contextmanager
def errors_in_one_line(*kinds: type[Exception]) -> Iterator[None]:
    """End the command with one line, without a traceback, at these exceptions."""
    try:
        yield
    except kinds as error:
        raise CommandFailed(str(error)) from error
