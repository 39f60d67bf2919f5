"""What commands share: `-o`, tables for people, data for programs, and errors in one line."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, Literal, TypeVar

import click

Output = Literal["table", "json", "yaml"]
Command = TypeVar("Command", bound=Callable[..., Any])

CANNOT = 2
"""The exit code when something about the machine or the cluster is in the way."""


class CommandFailed(click.ClickException):
    """Ends a command with one line on standard error: something is in the way."""

    exit_code = CANNOT

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))

    def show(self, file: IO[Any] | None = None) -> None:
        """Write the line."""
        click.echo(f"{click.style('error:', fg='red')} {self.message}", file=file or sys.stderr)


def output_option(command: Command) -> Command:
    """Give a command the option `-o` as its parameter `output`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json", "yaml"]),
        default="table",
        show_default=True,
        help="A table for people, or data for programs.",
    )(command)


def show(data: Any, output: Output, as_text: Callable[[], str]) -> None:
    """Print data in the form that was asked for; `as_text` makes the one for people."""
    match output:
        case "json":
            import json

            click.echo(json.dumps(data, indent=2))
        case "yaml":
            import yaml

            click.echo(yaml.safe_dump(data, sort_keys=False), nl=False)
        case "table":
            click.echo(as_text())


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell, three blanks apart, as kubectl shows them."""
    lines = [list(header), *(list(row) for row in rows)]
    plain = [[click.unstyle(cell) for cell in line] for line in lines]
    widths = [max(len(line[column]) for line in plain) for column in range(len(header))]
    return "\n".join(
        "   ".join(
            cell + " " * (width - len(bare))
            for cell, bare, width in zip(line, bares, widths, strict=True)
        ).rstrip()
        for line, bares in zip(lines, plain, strict=True)
    )


@contextmanager
def errors_in_one_line(*kinds: type[Exception]) -> Iterator[None]:
    """Turn these exceptions into the end of the command, without a traceback."""
    try:
        yield
    except kinds as error:
        raise CommandFailed(str(error)) from error
