"""Selects the local cluster of a command: `--name` and `--state-dir`."""

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
"""The most columns of a line for people to read or paste."""


class LocalCluster(msgspec.Struct, frozen=True):
    """A local cluster, as named on the command line."""

    name: str = DEFAULT_NAME
    chosen_state: Path | None = None

    @property
    def state(self) -> Path:
        """The state directory."""
        if self.chosen_state is not None:
            return self.chosen_state.absolute()
        base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
        return Path(base).absolute() / "quarterdeck" / self.name

    def command(self, subcommand: str, *arguments: str) -> str:
        """A shell command that runs `quarterdeck local SUBCOMMAND` for this cluster."""
        return shlex.join(self.words(subcommand, *arguments))

    def words(self, subcommand: str, *arguments: str) -> list[str]:
        """The words of that shell command."""
        words = [this_program(), "local", subcommand]
        if self.name != DEFAULT_NAME:
            words += ["--name", self.name]
        if self.chosen_state is not None:
            words += ["--state-dir", str(self.chosen_state)]
        return [*words, *arguments]


def pasteable(words: Sequence[str], *, indent: int = 0, columns: int = COLUMNS) -> str:
    """A shell command to paste, on several lines if one would be too long."""
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
    """Add `--name` and `--state-dir`; the command gets them as the parameter `cluster`."""

    @click.option(
        "--name",
        default=DEFAULT_NAME,
        show_default=True,
        callback=_checked_name,
        help="The name of the local cluster.",
    )
    @click.option(
        "--state-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="The directory of the cluster's state.  [default: ~/.local/state/quarterdeck/NAME]",
    )
    @wraps(function)
    def with_cluster(name: str, state_dir: Path | None, **parameters: Any) -> None:
        function(cluster=LocalCluster(name, state_dir), **parameters)

    return with_cluster


def _checked_name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", value):
        raise click.BadParameter("use lower-case letters, digits and hyphens")
    return value


def with_kubectl(text: str) -> str:
    """The text, in which each command after a colon names a kubectl that this machine has.

    That is the local cluster's own if no `kubectl` is on the path and the local cluster runs.
    """
    if ": kubectl " not in text or shutil.which("kubectl"):
        return text
    from quarterdeck.localcluster.state import Layout
    from quarterdeck.localcluster.status import running_status

    if running_status(Layout(LocalCluster().state)) is None:
        return text
    return text.replace(": kubectl ", f": {LocalCluster().command('kubectl')} ")


def this_program() -> str:
    """The name or path that calls this program again from the current directory."""
    this = Path(sys.argv[0]).absolute()
    on_path = shutil.which("quarterdeck")
    if not this.exists() or (on_path and Path(on_path).samefile(this)):
        return "quarterdeck"
    here = Path.cwd()
    return str(this.relative_to(here)) if this.is_relative_to(here) else str(this)
