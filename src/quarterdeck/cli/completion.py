"""`quarterdeck completion`: the script that completes commands in a shell."""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    Load it with:

    \b
    bash:  source <(quarterdeck completion bash)
    zsh:   source <(quarterdeck completion zsh)
    fish:  quarterdeck completion fish | source
    """  # noqa: D301 - click reads the backspace as a mark
    from quarterdeck.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 - one of the choices
    click.echo(kind(cli, {}, "quarterdeck", "_QUARTERDECK_COMPLETE").source())
