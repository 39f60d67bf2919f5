"""The help of every command: whole sentences, on a terminal with 80 columns."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from quarterdeck.cli.main import cli

WIDTH = 80


def commands(path: tuple[str, ...], command: click.Command) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if (found := command.get_command(context, name)) is not None:
                yield from commands((*path, name), found)


def context_of(path: tuple[str, ...]) -> click.Context:
    context = click.Context(cli, info_name="quarterdeck", terminal_width=WIDTH)
    for name in path[1:]:
        assert isinstance(context.command, click.Group)
        found = context.command.get_command(context, name)
        assert found is not None
        context = click.Context(found, info_name=name, parent=context, terminal_width=WIDTH)
    return context


def help_of(path: tuple[str, ...]) -> str:
    context = context_of(path)
    return context.command.get_help(context)


def texts_of(path: tuple[str, ...]) -> Iterator[str]:
    """The paragraphs of a command's help, and the help of each option without its default."""
    context = context_of(path)
    for paragraph in inspect.cleandoc(context.command.help or "").split("\n\n"):
        if not paragraph.startswith("\b"):  # an example, which is no text
            yield " ".join(paragraph.split())
    for parameter in context.command.get_params(context):
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield re.sub(r"\s+\[[^]]*]$", "", parameter.help or "")


def is_sentence(text: str) -> bool:
    """Whether a text begins like a sentence and ends like one, or introduces an example."""
    return bool(re.fullmatch(r"[A-Z`$].*[.:]", text, re.DOTALL))


PATHS = list(commands(("quarterdeck",), cli))


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_fits_the_terminal_and_cuts_no_sentence_off(path: tuple[str, ...]) -> None:
    _usage, *lines = help_of(path).splitlines()
    assert [line for line in lines if len(line) > WIDTH] == []
    assert [line for line in lines if line.endswith("...")] == []


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_text_of_the_help_is_a_whole_sentence(path: tuple[str, ...]) -> None:
    assert [text for text in texts_of(path) if not is_sentence(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="none"),
        pytest.param("The name of the cluster", id="no full stop"),
        pytest.param("the name of the cluster.", id="no capital letter"),
    ],
)
def test_what_is_no_sentence(text: str) -> None:
    assert not is_sentence(text)


@pytest.mark.parametrize(
    ("arguments", "whose"),
    [
        pytest.param(["--help"], "--state-dir", id="before the arguments, ours"),
        pytest.param(["get", "--help"], "the cluster does not run", id="after them, kubectl's"),
    ],
)
def test_the_help_of_kubectl(arguments: list[str], whose: str, tmp_path: Path) -> None:
    """There is no cluster: kubectl cannot be started, but its options can be listed."""
    variables = {"XDG_STATE_HOME": str(tmp_path)}
    done = CliRunner().invoke(cli, ["local", "kubectl", *arguments], env=variables)
    assert whose in done.output
