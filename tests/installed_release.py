"""Releases in a real registry, for tests that install them."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

from tests.places import DEPLOY
from tests.registry_process import RunningRegistry

from quarterdeck.images.release import release_image, write_release_directory
from quarterdeck.oci.layers import Image
from quarterdeck.payload.model import ReleaseMetadata
from quarterdeck.registry.client import Registry
from quarterdeck.registry.credentials import read_pull_secret
from quarterdeck.registry.push import push_image
from quarterdeck.registry.reference import parse_reference
from quarterdeck.web import Web

# The node this-machine runs images of this name as this installation.
NAME = "ship/quarterdeck"


def own_release(directory: Path, version: str, manifests: Mapping[str, str] | None = None) -> Image:
    """A release of our own payload, or of these manifests; it has no program in it."""
    files, source = directory / "files", DEPLOY / "payload"
    files.mkdir(parents=True)
    if manifests is not None:
        source = directory / "source"
        source.mkdir()
        references = {"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "spec": {}}
        for name, text in {"image-references": json.dumps(references), **manifests}.items():
            (source / name).write_text(text)
    write_release_directory(source, files, ReleaseMetadata(version=version), {}, keep_others=True)
    return release_image(files, version, None, "amd64")


def push(real: RunningRegistry, image: Image) -> str:
    """Push an image; return it by its digest."""

    async def work() -> str:
        async with Web(ca_file=str(real.tls.ca)) as web:
            registry = Registry(web, credentials=read_pull_secret(str(real.secret)))
            return str(await push_image(registry, parse_reference(f"{real.address}/{NAME}"), image))

    return asyncio.run(work())
