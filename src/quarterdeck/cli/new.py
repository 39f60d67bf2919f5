"""`quarterdeck new operator`: the first files of an operator of one's own."""

from pathlib import Path

import click

from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.output import errors_in_one_line


@click.group(cls=CommandGroup)
def new() -> None:
    """Write the files of a new project."""


@new.command()
@click.argument("name")
@click.option(
    "--kind",
    default="",
    help="The kind of the operator's objects.  [default: from NAME; WebProxy for web-proxy]",
)
@click.option(
    "--plural",
    default="",
    help="The plural of the kind.  [default: formed by the rules of English]",
)
@click.option(
    "--group", default="example.com", show_default=True, help="The API group of the kind."
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory of the project.  [default: NAME-operator]",
)
def operator(name: str, kind: str, plural: str, group: str, directory: Path | None) -> None:
    """Write a project for the operator NAME.

    It has a kind, a controller, tests, and a Makefile with `make up` and `make test`.
    """
    from quarterdeck.delivery.registry import OWN, installed
    from quarterdeck.scaffold.names import InvalidNameError, names_for
    from quarterdeck.scaffold.source import requirement
    from quarterdeck.scaffold.write import NotEmptyError, project_files, write_project

    with errors_in_one_line(InvalidNameError, NotEmptyError, OSError):
        own = [declared.name for declared in installed().of(OWN)]
        names = names_for(name, kind, plural, group, own)
        place = directory or Path(names.distribution)
        project = project_files(names, requirement())
        write_project(place, project)
    for path in sorted(project):
        click.echo(f"  {place / path}")
    click.echo(f"\nThe operator {name} is in {place}. Next:")
    click.echo(f"  cd {place}\n  make test\n  make up")
