"""Builds an image of Quarterdeck from Debian packages and a checkout, and writes an OCI archive."""

import shutil
import tempfile
import time as clock
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from quarterdeck.images import debian, python_files
from quarterdeck.images.contents import (
    LAYERS,
    LIBRARY,
    ImageKind,
    application_files,
    base_files,
    config,
    layer_of,
    split,
)
from quarterdeck.oci.archive import Named, write_archive
from quarterdeck.oci.layers import Entry, Layer, image, in_order, tree_entries, write_layer
from quarterdeck.oci.model import Platform

PAYLOAD = "deploy/payload"


class ImageOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What to build, and from what."""

    kind: ImageKind
    source: Path
    """A checkout of Quarterdeck."""
    mirrors: tuple[str, ...] = ()
    name: str = ""
    """The image's reference in the archive; empty for `quarterdeck:<version>`."""
    time: int = 0
    """Seconds since the epoch: the time of all files, and of the image."""


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """A written image."""

    digest: str
    name: str
    version: str
    architecture: str
    size: int
    """Of all layers, as they are fetched."""
    unpacked: int
    """Of all layers, as they lie on a node."""
    seconds: float


class Tree(msgspec.Struct, frozen=True, kw_only=True):
    """The files of an image by layer, and the version of Quarterdeck among them."""

    layers: dict[str, list[Entry]]
    version: str


def build_image(order: ImageOrder, output: Path, show: Callable[[str], None]) -> Built:
    """Build an image and write it as an OCI archive."""
    started = clock.monotonic()
    debian.check_machine()
    with tempfile.TemporaryDirectory(prefix="quarterdeck-image-") as scratch:
        tree = prepare(order, Path(scratch), show)
        show("writing the layers")
        return write_image(order, tree, output, Path(scratch), started)


def build_tree(order: ImageOrder, output: Path, show: Callable[[str], None]) -> int:
    """Build the files of an image and write them into a new directory; return their number."""
    debian.check_machine()
    with tempfile.TemporaryDirectory(prefix="quarterdeck-image-") as scratch:
        tree = prepare(order, Path(scratch), show)
        entries = [entry for name in LAYERS for entry in tree.layers[name]]
        write_tree(entries, output)
        return len(entries)


def prepare(order: ImageOrder, scratch: Path, show: Callable[[str], None]) -> Tree:
    """Everything that goes into the image, as files in a scratch directory."""
    root = scratch / "root"
    show(f"extracting Debian packages: {' '.join(order.kind.packages)}")
    debian.extract(order.kind.packages, root, order.mirrors)
    return prepare_python(order, root, scratch, show)


def prepare_python(
    order: ImageOrder, root: Path, scratch: Path, show: Callable[[str], None]
) -> Tree:
    """The same, in a directory with the extracted Debian packages."""
    _prune(root)
    show("installing the Python packages")
    python_files.install_requirements(order.source, root, scratch)
    version = python_files.install_wheel(order.source, root, scratch, order.time)
    show("compiling")
    python_files.compile_tree(root)
    trusted = sorted((root / "usr/share/ca-certificates").rglob("*.crt"))
    payload = {path.name: path for path in sorted((order.source / PAYLOAD).iterdir())}
    layers = split(tree_entries(root))
    layers["base"] += base_files({path.name: path.read_bytes() for path in trusted})
    layers["application"] += application_files(order.kind, payload)
    return Tree(layers=layers, version=version)


def write_image(
    order: ImageOrder, tree: Tree, output: Path, scratch: Path, started: float
) -> Built:
    """Write the layers and the archive."""
    layers: list[Layer] = []
    blobs: dict[str, bytes | Path] = {}
    for name in LAYERS:
        path = scratch / f"{name}.tar.gz"
        with path.open("wb") as file:
            layers.append(write_layer(tree.layers[name], file, order.time))
        blobs[layers[-1].descriptor.digest] = path
    architecture = debian.architecture()
    created = datetime.fromtimestamp(order.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = image(config(order.kind, tree.version, architecture, created), layers, blobs)
    name = order.name or f"{order.kind.image_name}:{tree.version}"
    platform = Platform(architecture=architecture, os="linux")
    write_archive(output, Named(image=made, reference=name, platform=platform), time=order.time)
    return Built(
        digest=made.descriptor.digest,
        name=name,
        version=tree.version,
        architecture=architecture,
        size=sum(layer.descriptor.size for layer in layers),
        unpacked=sum(layer.unpacked for layer in layers),
        seconds=round(clock.monotonic() - started, 1),
    )


def write_tree(entries: Sequence[Entry], output: Path) -> None:
    """Write files as a container would see them; the directory must not exist yet."""
    output.mkdir()
    output.chmod(0o755)
    for entry in in_order(entries):
        path = output / entry.path
        if entry.link is not None:
            path.symlink_to(entry.link)
            continue
        if entry.content is None:
            path.mkdir()
        elif isinstance(entry.content, Path):
            shutil.copyfile(entry.content, path)
        else:
            path.write_bytes(entry.content)
        path.chmod(entry.mode)


def _prune(root: Path) -> None:
    """Remove modules that the image does not take, so that they are not compiled."""
    library = root / LIBRARY
    for path in library.iterdir():
        if path.is_dir() and layer_of(f"{LIBRARY}/{path.name}/x") is None:
            shutil.rmtree(path)
