"""Pushes an image to a registry: its blobs first, then the manifest, which makes it visible."""

from quarterdeck.oci.layers import Image
from quarterdeck.registry.client import Registry
from quarterdeck.registry.reference import Reference


async def push_image(registry: Registry, target: Reference, image: Image) -> Reference:
    """Push an image under the target's tag; return it by its digest."""
    manifest = image.blobs[image.descriptor.digest]
    for descriptor in (image.manifest.config, *image.manifest.layers):
        await registry.push_blob(target, image.blobs[descriptor.digest])
    data = manifest if isinstance(manifest, bytes) else manifest.read_bytes()
    return target.at(await registry.push_manifest(target, data, image.descriptor.media_type))
