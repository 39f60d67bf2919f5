"""`quarterdeck image`: build the images of the operators and of the router."""

import os
from pathlib import Path

import click
import msgspec

from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.output import CommandFailed, Output, errors_in_one_line, show
from quarterdeck.images.build import Built, ImageOrder, build_image, build_tree
from quarterdeck.images.contents import ImageKind
from quarterdeck.images.errors import BuildError
from quarterdeck.images.python_files import source_directory


@click.group(cls=CommandGroup)
def image() -> None:
    """Build the images of Quarterdeck, without Docker and without a registry."""


@image.command()
@click.option("--router", is_flag=True, help="Build the router's image instead of the operators'.")
@click.option(
    "-o",
    "--output",
    "archive",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The OCI archive to write.",
)
@click.option(
    "--tree",
    type=click.Path(path_type=Path, exists=False),
    metavar="DIR",
    help="Write the image's files into a new directory instead, for a Containerfile.",
)
@click.option("--name", default="", metavar="REF", help="The image's name in the archive.")
@click.option(
    "--source",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A checkout of Quarterdeck; the one that runs, by default.",
)
@click.option(
    "--mirror",
    "mirrors",
    multiple=True,
    metavar="LINE",
    help="A Debian archive, as a line of apt's sources.list; Debian's own by default.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="The format of the report.",
)
def build(
    router: bool,
    archive: Path | None,
    tree: Path | None,
    name: str,
    source: Path | None,
    mirrors: tuple[str, ...],
    output: Output,
) -> None:
    """Build an image from Debian packages and a checkout, and write it as an OCI archive.

    It needs root and mmdebstrap. The same inputs give the same digest; SOURCE_DATE_EPOCH sets the
    time of the image. `skopeo copy oci-archive:FILE docker://REF` puts it into a registry.
    """
    if (archive is None) == (tree is None):
        raise CommandFailed("name what to write: -o FILE for an archive, or --tree DIR")
    with errors_in_one_line(BuildError, OSError):
        order = ImageOrder(
            kind=ImageKind.ROUTER if router else ImageKind.OPERATORS,
            source=source_directory(source),
            mirrors=mirrors,
            name=name,
            time=source_date(),
        )
        if tree is not None:
            count = build_tree(order, tree, _progress)
            click.echo(f"{tree}: {count} files")
            return
        assert archive is not None  # noqa: S101 - for the type checker
        built = build_image(order, archive, _progress)
    show(
        {"archive": str(archive), **msgspec.to_builtins(built)},
        output,
        lambda: _text(archive, built),
    )


def source_date() -> int:
    """The time of what is built: SOURCE_DATE_EPOCH, or the epoch."""
    text = os.environ.get("SOURCE_DATE_EPOCH", "") or "0"
    if not text.isascii() or not text.isdigit() or len(text) > 11:
        raise CommandFailed(f"SOURCE_DATE_EPOCH is {text!r}: set it to seconds, or unset it")
    return int(text)


def _progress(step: str) -> None:
    click.echo(step, err=True)


def _text(archive: Path, built: Built) -> str:
    return (
        f"{archive}: {built.name} for {built.architecture}, {built.size / 1e6:.0f} MB "
        f"({built.unpacked / 1e6:.0f} MB unpacked), built in {built.seconds:.0f} s\n{built.digest}"
    )
