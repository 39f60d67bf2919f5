"""`quarterdeck release`: build, sign, show and compare releases.

The package `images` builds and reads them; this module parses, calls and shows.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.image import source_date
from quarterdeck.cli.output import CommandFailed, Output, errors_in_one_line, output_option, show
from quarterdeck.cli.release_registry import graph, push, read_from_registry, registry_options
from quarterdeck.cli.release_text import difference_text, info_text
from quarterdeck.images.debian import architecture
from quarterdeck.images.described import (
    ReadRelease,
    difference,
    difference_view,
    read_archive,
    read_directory,
    release_view,
)
from quarterdeck.images.errors import BuildError
from quarterdeck.images.release import (
    has_digest,
    read_base,
    release_image,
    write_release_directory,
)
from quarterdeck.oci.archive import Archive, Named, write_archive
from quarterdeck.oci.errors import OciError
from quarterdeck.oci.model import Platform
from quarterdeck.oci.signature import load_private_key, sign, signature_image, signature_tag
from quarterdeck.payload.images import is_image
from quarterdeck.payload.model import Payload, PayloadError, ReleaseMetadata
from quarterdeck.payload.releases import releases_in
from quarterdeck.registry.reference import has_registry
from quarterdeck.versions import parse_version

_OPERATORS = "quarterdeck"
"""The name of the operators' image, which is also the base of a release."""
_FAILURES = (BuildError, OciError, PayloadError, OSError)


def _versions(
    _ctx: click.Context, _param: click.Parameter, value: str | tuple[str, ...]
) -> str | tuple[str, ...]:
    for version in (value,) if isinstance(value, str) else value:
        if parse_version(version) is None:
            raise click.BadParameter(f"{version!r} is no semantic version; write one like 1.2.3")
    return value


def _images(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    images = {}
    for value in values:
        name, equals, image = value.partition("=")
        if not equals or not name or not is_image(image):
            raise click.BadParameter(f"{value!r} is not NAME=REF, with an image reference")
        images[name] = image
    return images


@click.group(cls=CommandGroup)
def release() -> None:
    """Build, sign, show and compare releases.

    A release image is the operators' image with a payload in it. A RELEASE is an OCI archive, a
    directory with a payload, or an image in a registry.
    """


@release.command()
@click.option("--version", required=True, callback=_versions, help="The version of the release.")
@click.option(
    "--from",
    "source",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="The payload.",
)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="NAME=REF",
    callback=_images,
    help="The image to pull for a name in image-references, with its digest.",
)
@click.option(
    "--keep-others", is_flag=True, help="Leave images that no --image resolves as they are."
)
@click.option(
    "--previous",
    multiple=True,
    metavar="VERSION",
    callback=_versions,
    help="A version that can update to this one.",
)
@click.option("--url", default="", help="The documentation of the release.")
@click.option(
    "--base",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="ARCHIVE",
    help="The operators' image, as `image build` writes it.",
)
@click.option("--name", default="", metavar="REF", help="The image's name in the archive.")
@click.option(
    "-o",
    "--output",
    "archive",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="ARCHIVE",
    help="The OCI archive to write.",
)
def build(
    version: str,
    source: Path,
    images: dict[str, str],
    keep_others: bool,
    previous: tuple[str, ...],
    url: str,
    base: Path | None,
    name: str,
    archive: Path,
) -> None:
    """Build the release image of the payload in DIR, and write it as an OCI archive.

    Every image in the payload gets its digest, from --image or from the payload itself. With
    --base, `--image quarterdeck=REF` needs no digest: it is that of the base. Without --base the
    image has only the manifests, and the cluster version operator cannot run from it.
    """
    if found := releases_in(source):
        raise CommandFailed(
            f"{source} is a directory of releases; name one: {', '.join(map(str, found))}"
        )
    metadata = ReleaseMetadata(version=version, previous=previous, url=url)
    with errors_in_one_line(*_FAILURES), TemporaryDirectory(prefix="quarterdeck-release-") as name_:
        scratch = Path(name_)
        files = scratch / "files"
        files.mkdir()
        under = read_base(base, architecture(), scratch) if base else None
        operators = images.get(_OPERATORS, "")
        if under and operators and not has_digest(operators):
            images[_OPERATORS] = f"{_without_tag(operators)}@{under.descriptor.digest}"
        loaded = write_release_directory(source, files, metadata, images, keep_others=keep_others)
        made = release_image(files, version, under, architecture(), source_date())
        named = Named(
            image=made,
            reference=name or f"quarterdeck-release:{version.replace('+', '_')}",
            platform=Platform(architecture=architecture(), os="linux"),
        )
        write_archive(archive, named, time=source_date())
    if kept := _without_digest(loaded):
        click.echo(f"nodes pull these images by the names that they have: {kept}", err=True)
    if base is None:
        click.echo("without --base, the cluster version operator cannot run from it", err=True)
    click.echo(f"{archive}: release {version}, {len(loaded.manifests)} manifests")
    click.echo(made.descriptor.digest)


def _without_digest(loaded: Payload) -> str:
    """The names of the images that the release does not name by a digest."""
    listed = (pair for images in loaded.references.values() for pair in images.items())
    return ", ".join(sorted({name for image, name in listed if not has_digest(image)}))


@release.command(name="sign")
@click.argument("archive", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--key",
    required=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="The private key, on P-256, in PEM.",
)
@click.option(
    "--reference",
    required=True,
    metavar="REF",
    help="The repository that the release is pushed to, which the signature names.",
)
@click.option(
    "-o",
    "--output",
    "signature",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The OCI archive with the signature to write.",
)
def sign_(archive: Path, key: Path, reference: str, signature: Path) -> None:
    """Sign the release image in ARCHIVE, as `cosign sign --key` does.

    The signature is an image of its own. Push it to the repository of the release, with the tag
    that is printed.
    """
    if not is_image(reference):
        raise CommandFailed(f"--reference {reference}: not an image reference")
    with errors_in_one_line(*_FAILURES):
        private = load_private_key(key.read_bytes())
        with Archive(archive) as opened:
            digest = opened.image(architecture())[0].digest
        made = signature_image([sign(_without_tag(reference), digest, private)])
        tag = signature_tag(digest)
        write_archive(signature, Named(image=made, reference=f"{_without_tag(reference)}:{tag}"))
    click.echo(f"{signature}: signature of {digest}")
    click.echo(f"{_without_tag(reference)}:{tag}")


@release.command()
@click.argument("target", metavar="RELEASE")
@registry_options
@output_option
def info(target: str, output: Output, pull_secret: str, registry_ca: str) -> None:
    """Show a release: its version, its image and the images in it."""
    read = read_release(target, pull_secret, registry_ca)
    show(release_view(read), output, lambda: info_text(read))


@release.command()
@click.argument("old", metavar="RELEASE")
@click.argument("new", metavar="RELEASE")
@registry_options
@output_option
def diff(old: str, new: str, output: Output, pull_secret: str, registry_ca: str) -> None:
    """Show how the second RELEASE differs from the first: images and manifests.

    The exit code is 0 if nothing differs but the version, 1 if something does.
    """
    one, other = (read_release(each, pull_secret, registry_ca) for each in (old, new))
    found = difference(one.payload, other.payload)
    show(difference_view(found), output, lambda: difference_text(found))
    sys.exit(not found.is_none)


def read_release(target: str, pull_secret: str = "", registry_ca: str = "") -> ReadRelease:
    """The release that a user names; CommandFailed if it cannot be read."""
    path = Path(target)
    with errors_in_one_line(*_FAILURES):
        if path.is_dir():
            if found := releases_in(path):
                names = ", ".join(str(path / name) for name in found)
                raise CommandFailed(f"{path} is a directory of releases; name one of them: {names}")
            return read_directory(path)
        if path.is_file():
            return read_archive(path, architecture())
    if has_registry(target):
        return read_from_registry(target, pull_secret, registry_ca)
    raise CommandFailed(
        f"{target}: there is no such directory or archive; an image is named with its registry, as "
        "registry.example.test/NAME:TAG"
    )


release.add_command(push)
release.add_command(graph)


def _without_tag(reference: str) -> str:
    """The repository of an image reference."""
    plain = reference.partition("@")[0]
    head, slash, last = plain.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}"
