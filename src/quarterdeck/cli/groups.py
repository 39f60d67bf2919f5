"""Groups of subcommands, whose help has the whole first sentence of each."""

import click

_LONGEST = 1000
"""More characters than a summary has, so that click does not cut it."""


class CommandGroup(click.Group):
    """A group that shows the summary of each subcommand, on several lines if need be."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of subcommands."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, self.summary(ctx, name)) for name in self.list_commands(ctx)]
            )

    def summary(self, ctx: click.Context, name: str) -> str:
        """The first sentence of a subcommand's help."""
        command = self.get_command(ctx, name)
        return command.get_short_help_str(_LONGEST) if command is not None else ""
