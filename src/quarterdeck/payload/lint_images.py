"""Lint: images that `image-references` does not list.

Only listed images become part of a release; any other image is not mirrored with it, and is pulled
from the registry in its name.
"""

from collections.abc import Iterator

from quarterdeck.payload.findings import Finding, error, warning
from quarterdeck.payload.image_places import (
    IMAGE_MAP,
    containers,
    image_map,
    image_variables,
)
from quarterdeck.payload.load import UNKNOWN_IMAGE
from quarterdeck.payload.model import Manifest, Payload

_REMEDY = "list it in image-references, or use an image that is listed there"


def image_findings(payload: Payload, manifest: Manifest) -> Iterator[Finding]:
    """The images of a manifest that are in neither its component's list nor the release's."""
    listed = payload.references_for(manifest) or {}
    above = payload.references.get(manifest.directory.rpartition("/")[0], {})
    release = {payload.release.image, UNKNOWN_IMAGE, *payload.release.images.values()}

    def unlisted(image: str) -> bool:
        return image not in listed and image not in above and image not in release

    for path, container in containers(manifest.object):
        image = container.get("image")
        if isinstance(image, str) and unlisted(image):
            message = "a container runs an image that image-references does not list"
            yield error("image-not-listed", manifest, (*path, "image"), image, message, _REMEDY)
        for variable, value in image_variables(container):
            if unlisted(value):
                message = "a variable names an image that image-references does not list"
                where = (*path, "env", variable, "value")
                yield warning("image-not-listed", manifest, where, value, message, _REMEDY)
    for name, value in image_map(manifest.object).items():
        if unlisted(value):
            message = f"{name} is an image that image-references does not list"
            where = ("data", IMAGE_MAP)
            yield warning("image-not-listed", manifest, where, value, message, _REMEDY)
