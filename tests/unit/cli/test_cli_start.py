"""Starting the command line: what it imports, its version, completion and the kubectl plugin."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

import quarterdeck
from quarterdeck.cli.main import COMMANDS, SUMMARIES, cli

HEAVY = ("aiohttp", "rich", "cryptography", "jinja2", "prometheus_client", "yaml")

SHOW_IMPORTS = """
import sys
from quarterdeck.cli.main import cli
try:
    cli(sys.argv[1:], prog_name="quarterdeck")
finally:
    print("\\n" + " ".join(sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--version"], id="--version"),
        pytest.param(["--help"], id="--help"),
        pytest.param(["local", "--help"], id="local --help"),
        pytest.param(["local", "status"], id="local status"),
        pytest.param(["local", "up", "--help"], id="local up --help"),
    ],
)
def test_a_quick_command_imports_nothing_heavy(arguments: list[str], tmp_path: Path) -> None:
    """The start takes well under 0.3 s because these libraries come when they are needed."""
    result = subprocess.run(
        [sys.executable, "-c", SHOW_IMPORTS, *arguments],
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    imported = set(result.stderr.split())
    assert "click" in imported, result.stderr
    assert not imported & set(HEAVY)


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("quarterdeck")
    return subprocess.run(
        [program, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_says_of_each_command_what_it_says_itself(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert SUMMARIES[name] == command.get_short_help_str(limit=200)


def test_the_version_is_the_packages() -> None:
    assert run("--version").stdout == f"quarterdeck, version {quarterdeck.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_the_shell_sources(shell: str) -> None:
    result = run("completion", shell)
    assert result.returncode == 0, result.stderr
    assert f"_QUARTERDECK_COMPLETE={shell}_complete" in result.stdout


def test_completion_offers_subcommands() -> None:
    """What bash asks for when `quarterdeck local s<Tab>` is typed."""
    result = run(
        _QUARTERDECK_COMPLETE="bash_complete", COMP_WORDS="quarterdeck local s", COMP_CWORD="2"
    )
    assert result.stdout == "plain,status\n"


def test_an_unknown_command_is_refused() -> None:
    result = run("frobnicate")
    assert result.returncode == 2
    assert "No such command 'frobnicate'" in result.stderr
    assert "Did you mean 'update'?" in run("updat").stderr


def test_no_summary_of_a_subcommand_is_cut() -> None:
    """Help is read in terminals of 80 columns, where a longer sentence takes a second line."""
    for name in COMMANDS:
        group = cli.get_command(click.Context(cli), name)
        if not isinstance(group, click.Group):
            continue
        shown = group.get_help(click.Context(group, info_name=name, terminal_width=80))
        assert "..." not in shown.partition("\nCommands:\n")[2], shown
        assert max(map(len, shown.splitlines())) <= 80


def test_an_unusable_name_is_refused() -> None:
    result = run("local", "status", "--name", "../escape")
    assert result.returncode == 2
    assert "use lower-case letters, digits and hyphens" in result.stderr


@pytest.mark.parametrize("words", [["--help"], ["payload", "--help"], ["completion", "bash"]])
def test_a_reader_that_has_gone_is_no_error(words: list[str]) -> None:
    """The exit code is that of a program that SIGPIPE ended; nothing is written about it."""
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "quarterdeck", *words],
            stdout=writes,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")
