"""`quarterdeck release push` and `release graph`: releases in registries, and their channels."""

import asyncio
import shutil
import ssl
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from quarterdeck import log as logs
from quarterdeck.cli.groups import CommandGroup
from quarterdeck.cli.output import CommandFailed, errors_in_one_line
from quarterdeck.cli.steps import Steps
from quarterdeck.images.debian import architecture
from quarterdeck.images.described import ReadRelease, ReleaseOrigin, base_of, read_directory
from quarterdeck.localcluster.binaries.progress import size
from quarterdeck.oci.archive import Archive
from quarterdeck.oci.errors import OciError
from quarterdeck.oci.layers import Image
from quarterdeck.oci.model import Descriptor, decode_config
from quarterdeck.payload.model import PayloadError
from quarterdeck.registry.client import Registry
from quarterdeck.registry.credentials import PullSecretError, read_pull_secret
from quarterdeck.registry.errors import RegistryError
from quarterdeck.registry.push import push_image
from quarterdeck.registry.reference import Reference, parse_reference
from quarterdeck.registry.release_image import fetch_release, image_manifest
from quarterdeck.registry.release_store import ReleaseStore
from quarterdeck.terminal import visible
from quarterdeck.update_graph.channels import ChannelInvalid, channel_graph, channels
from quarterdeck.web import Web, WebError

FAILURES = (RegistryError, PullSecretError, WebError, OciError, PayloadError, OSError, ValueError)


def registry_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options with which a registry is reached."""
    for decorate in (
        click.option(
            "--registry-ca",
            default="",
            metavar="FILE",
            help="Certificates of authorities that are trusted beside the system's.",
        ),
        click.option(
            "--pull-secret",
            default="",
            metavar="FILE",
            envvar="PULL_SECRET",
            help="Credentials of registries, as ~/.docker/config.json has them.",
        ),
    ):
        command = decorate(command)
    return command


@click.command()
@click.argument("archive", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("target", metavar="REF")
@registry_options
def push(archive: Path, target: str, pull_secret: str, registry_ca: str) -> None:
    """Push the image in ARCHIVE to a registry as REF.

    ARCHIVE is what `image build`, `release build` or `release sign` wrote. The image's reference by
    its digest is printed.
    """
    with Steps() as step:
        step(f"pushing {visible(str(archive))} ({size(archive.stat().st_size)})")
        pushed = push_archive(archive, target, pull_secret, registry_ca)
    click.echo(str(pushed))


def push_archive(archive: Path, target: str, pull_secret: str, registry_ca: str) -> Reference:
    """Push an archive, and return the image by its digest; CommandFailed if that fails."""
    with errors_in_one_line(*FAILURES), TemporaryDirectory(prefix="quarterdeck-push-") as scratch:
        reference = parse_reference(target)
        image = _archived(archive, Path(scratch))
        return asyncio.run(_push(reference, image, pull_secret, registry_ca))


async def _push(target: Reference, image: Image, pull_secret: str, ca_file: str) -> Reference:
    async with Web(ca_file=ca_file) as web:
        credentials = read_pull_secret(pull_secret)
        return await push_image(Registry(web, credentials=credentials), target, image)


def _archived(archive: Path, scratch: Path) -> Image:
    """The image of an archive; its blobs are files, because layers are large."""
    with Archive(archive) as opened:
        descriptor, manifest = opened.image(architecture())
        blobs: dict[str, bytes | Path] = {descriptor.digest: opened.blob(descriptor)}

        def unpack(blob: Descriptor) -> None:
            file = scratch / blob.digest.replace(":", "-")
            with opened.open_blob(blob) as source, file.open("wb") as out:
                shutil.copyfileobj(source, out)
            blobs[blob.digest] = file

        for blob in (manifest.config, *manifest.layers):
            unpack(blob)
    return Image(descriptor=descriptor, manifest=manifest, blobs=blobs)


def read_from_registry(target: str, pull_secret: str, registry_ca: str) -> ReadRelease:
    """The release of an image in a registry; CommandFailed if it cannot be read."""

    async def fetch(directory: Path) -> ReadRelease:
        async with Web(ca_file=registry_ca) as web:
            registry = Registry(web, credentials=read_pull_secret(pull_secret))
            store = ReleaseStore(directory)
            found = await fetch_release(registry, parse_reference(target), store)
            origin = await _origin(registry, parse_reference(target).at(found.digest), target)
        return read_directory(found.directory, origin)

    with (
        errors_in_one_line(*FAILURES),
        TemporaryDirectory(prefix="quarterdeck-fetch-") as scratch,
        Steps() as step,
    ):
        step(f"fetching {visible(target)}")
        return asyncio.run(fetch(Path(scratch)))


async def _origin(registry: Registry, image: Reference, shown: str) -> ReleaseOrigin:
    """What the image says of itself beside its release."""
    manifest = await image_manifest(registry, image, await registry.manifest(image))
    described = manifest.config
    config = await registry.small_blob(image, described.digest, described.size)
    return ReleaseOrigin(
        place=shown,
        digest=image.digest,
        size=sum(layer.size for layer in manifest.layers),
        base=base_of(decode_config(config)),
    )


@click.group(cls=CommandGroup)
def graph() -> None:
    """Serve channels of releases to clusters."""


@graph.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--listen", default="127.0.0.1:8080", show_default=True, help="The address, as HOST:PORT."
)
@click.option("--tls-certificate", metavar="FILE", help="The service's certificate, in PEM.")
@click.option("--tls-key", metavar="FILE", help="The key of the certificate, in PEM.")
@click.pass_obj
def serve(
    verbosity: int,
    directory: Path,
    listen: str,
    tls_certificate: str | None,
    tls_key: str | None,
) -> None:
    """Serve the channels in DIRECTORY as an update service, until stopped.

    DIRECTORY has a file CHANNEL.yaml for each channel. Each is read for each request.
    """
    from quarterdeck.update_graph.service import serve as serve_channels

    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise CommandFailed(f"--listen {listen}: write HOST:PORT")
    if bool(tls_certificate) != bool(tls_key):
        raise CommandFailed("--tls-certificate and --tls-key belong together: set both")
    logs.configure(verbosity=verbosity)
    with errors_in_one_line(OSError, ChannelInvalid):
        for channel in channels(directory):
            channel_graph(directory, channel)  # a mistake is said at once
        tls = _tls(tls_certificate, tls_key)
        with suppress(KeyboardInterrupt):
            asyncio.run(serve_channels(directory, host.strip("[]"), int(port), tls))


def _tls(certificate: str | None, key: Any) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context
