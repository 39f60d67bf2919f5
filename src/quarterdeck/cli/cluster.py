"""Which local cluster a command is about: `--name` and `--state-dir`."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click
import msgspec

DEFAULT_NAME = "local"
COLUMNS = 80
"""What lines fit into that we write for people to read or paste."""


class LocalCluster(msgspec.Struct, frozen=True):
    """A local cluster, as it was named on the command line."""

    name: str = DEFAULT_NAME
    chosen_state: Path | None = None

    @property
    def state(self) -> Path:
        """Where its state is kept."""
        if self.chosen_state is not None:
            return self.chosen_state.absolute()
        base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
        return Path(base).absolute() / "quarterdeck" / self.name

    def command(self, subcommand: str, *arguments: str) -> str:
        """A line that runs `quarterdeck local SUBCOMMAND` on it when pasted into this shell."""
        return shlex.join(self.words(subcommand, *arguments))

    def words(self, subcommand: str, *arguments: str) -> list[str]:
        """The words of that line."""
        words = [this_program(), "local", subcommand]
        if self.name != DEFAULT_NAME:
            words += ["--name", self.name]
        if self.chosen_state is not None:
            words += ["--state-dir", str(self.chosen_state)]
        return [*words, *arguments]


def pasteable(words: Sequence[str], *, indent: int = 0, columns: int = COLUMNS) -> str:
    """A command to paste into a shell, over several lines where one would be too long."""
    first, then = " " * indent, " " * (indent + 4)
    lines, line = [], first + shlex.quote(words[0])
    for position, word in enumerate(words[1:], start=2):
        quoted = shlex.quote(word)
        room = columns - (0 if position == len(words) else len(" \\"))
        if len(f"{line} {quoted}") > room:
            lines.append(line)
            line = then + quoted
        else:
            line = f"{line} {quoted}"
    return " \\\n".join([*lines, line])


def cluster_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--name` and `--state-dir`, as its parameter `cluster`."""

    @click.option(
        "--name",
        default=DEFAULT_NAME,
        show_default=True,
        callback=_checked_name,
        help="Which cluster, where there are several.",
    )
    @click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Where the cluster's state is kept.  [default: ~/.local/state/quarterdeck/NAME]",
    )
    @wraps(function)
    def with_cluster(name: str, state_dir: Path | None, **parameters: Any) -> None:
        function(cluster=LocalCluster(name, state_dir), **parameters)

    return with_cluster


def _checked_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", value):
        raise click.BadParameter("use lower-case letters, digits and hyphens")
    return value


def this_program() -> str:
    """How this program can be called again from the directory where it was called."""
    this = Path(sys.argv[0]).absolute()
    on_path = shutil.which("quarterdeck")
    if not this.exists() or (on_path and Path(on_path).samefile(this)):
        return "quarterdeck"
    here = Path.cwd()
    return str(this.relative_to(here)) if this.is_relative_to(here) else str(this)
