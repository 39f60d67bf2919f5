"""The images that the project makes for real nodes itself: one static program each. Pure."""

from pathlib import Path

from quarterdeck.localcluster.real_nodes.addresses import REGISTRY
from quarterdeck.oci.layers import Entry, Image, image, layer_bytes
from quarterdeck.registry.reference import Reference

NOBODY = "65532:65532"


def program_image(program: Path, architecture: str) -> Image:
    """An image whose only file, and entry point, is this program."""
    layer, data = layer_bytes([Entry(path=program.name, mode=0o755, content=program)])
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": [f"/{program.name}"], "User": NOBODY},
    }
    return image(config, [layer], {layer.descriptor.digest: data})


def pushed_as(name: str, version: str, made: Image) -> Reference:
    """Where an image of ours is in the registry: by its digest, and a tag for people."""
    return Reference(registry=REGISTRY, repository=name, tag=version, digest=made.descriptor.digest)
