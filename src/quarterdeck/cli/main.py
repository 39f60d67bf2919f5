"""The entry point: the options that all subcommands share, and their modules."""

import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence

import click

from quarterdeck import __version__
from quarterdeck.cli.groups import CommandGroup
from quarterdeck.terminal import wants_colours

COMMANDS = {
    "catalog": "quarterdeck.cli.catalog:catalog",
    "completion": "quarterdeck.cli.completion:completion",
    "console": "quarterdeck.cli.console:console",
    "handover": "quarterdeck.cli.handover:handover",
    "image": "quarterdeck.cli.image:image",
    "ingress": "quarterdeck.cli.ingress:ingress",
    "install": "quarterdeck.cli.install:install",
    "local": "quarterdeck.cli.local:local",
    "log-level": "quarterdeck.cli.log_level:log_level",
    "new": "quarterdeck.cli.new:new",
    "operators": "quarterdeck.cli.operators:operators",
    "payload": "quarterdeck.cli.payload:payload",
    "release": "quarterdeck.cli.release:release",
    "router": "quarterdeck.cli.router:router",
    "run": "quarterdeck.cli.run:run",
    "staleness": "quarterdeck.cli.staleness:staleness",
    "subscription": "quarterdeck.cli.subscription:subscription",
    "uninstall": "quarterdeck.cli.uninstall:uninstall",
    "update": "quarterdeck.cli.update:update",
}
"""The `module:command` of each subcommand; a module is imported when its command is used."""

SUMMARIES = {
    "catalog": "Make and check catalogs of operators, without a cluster.",
    "completion": "Print the completion script of a shell.",
    "console": "Serve the web console, until Ctrl-C.",
    "handover": "Show who manages metal3, and simulate the updates that hand it over.",
    "image": "Build the images of Quarterdeck, without Docker and without a registry.",
    "ingress": "Explain IngressControllers and their access logs.",
    "install": "Put Quarterdeck into the cluster of the current kubeconfig.",
    "local": "Run a real Kubernetes control plane on this machine.",
    "log-level": "Show or change the log level of the cluster version operator.",
    "new": "Write the files of a new project.",
    "operators": "Show the cluster operators and their health, worst first.",
    "payload": "Check the manifests of a release, without a cluster.",
    "release": "Build, sign, show and compare releases.",
    "router": "Route traffic as the Ingress objects say, by HAProxy, until stopped.",
    "run": "Run operators until stopped.",
    "staleness": "Show whether a cluster operator still updates its conditions.",
    "subscription": "Show what Subscriptions install and configure; approve their updates.",
    "uninstall": "Take Quarterdeck out of the cluster of the current kubeconfig.",
    "update": "Show the cluster's version and the updates there are, or update to VERSION.",
}
"""The first sentence of each command's help, so that `--help` need not import all modules."""


_UNSET = re.compile(r"\$\([A-Za-z_][A-Za-z0-9_]*\)")
_KLOG = re.compile(r"^--?v=(\d+)$")


class LazyGroup(CommandGroup):
    """A group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all subcommands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def summary(self, ctx: click.Context, name: str) -> str:
        """The first sentence of a subcommand's help, without an import."""
        return SUMMARIES[name]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand; an error has the names that are written alike, as in other groups."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.exceptions.NoSuchCommand(name, possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="quarterdeck")
@click.option(
    "-v",
    "--verbosity",
    type=click.IntRange(0, 10),
    default=2,
    show_default=True,
    help="Log verbosity, as in klog: 2 is normal, 4 adds decisions, 6 requests, 8 their bodies.",
)
@click.pass_context
def cli(ctx: click.Context, verbosity: int) -> None:
    """Operators that configure, watch, upgrade and hand over other operators."""
    ctx.obj = verbosity
    if not wants_colours(os.environ, terminal=True):
        ctx.color = False


def heed_sigterm() -> None:
    """End at SIGTERM from now on, also as PID 1 of a container.

    The kernel drops signals that PID 1 does not handle. A pod that is deleted during its start
    would run until it is killed, and could become the leader meanwhile.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def arguments(given: Sequence[str]) -> list[str]:
    """The arguments as a pod of an operator may have them, as click reads them.

    `-v=4` is klog's way to write `--verbosity 4`. A process gets `$(NAME)` unchanged while the
    variable is not set: before the command, it is ignored.
    """
    words = list(given)
    first = next((at for at, word in enumerate(words) if word in COMMANDS), len(words))
    options = [word for word in words[:first] if not _UNSET.fullmatch(word)]
    return [_KLOG.sub(r"--verbosity=\1", word) for word in options] + words[first:]


def main() -> None:
    """Run the command line; kubectl calls it as `kubectl quarterdeck`."""
    heed_sigterm()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the terminal's encoding does not have is shown as an escape.
        sys.stdout.reconfigure(errors="backslashreplace")
    output = sys.stdout
    try:
        cli(arguments(sys.argv[1:]), prog_name="quarterdeck")
    except SystemExit:
        # Click replaces the output when its reader has gone, as `head` goes, and exits with 1. The
        # exit codes of commands say how the cluster is, and a command that was cut short does not
        # know: its code is the one of a program that SIGPIPE ended.
        if sys.stdout is not output:
            sys.exit(128 + signal.SIGPIPE)
        raise
