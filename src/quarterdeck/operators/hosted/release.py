"""The release of a hosted cluster: its version, and what its operator understands. Pure."""

from quarterdeck.api.meta import Object
from quarterdeck.controller import InvalidSpec
from quarterdeck.payload.images import is_image
from quarterdeck.versions import Version, parse_version

FIRST_WITH_CONFIG = Version(0, 1, 0)
"""The first release whose cluster version operator knows `--config`."""


def checked_release(spec: Object) -> tuple[str, str]:
    """The image and the version of `spec.release`; `InvalidSpec` if one is not valid."""
    release = spec.get("release") or {}
    image = release.get("image")
    if not isinstance(image, str) or not is_image(image):
        remedy = "write it like registry.example.test/quarterdeck:0.1.0"
        raise InvalidSpec("spec.release.image", image, remedy)
    version = release.get("version") or _tag(image)
    if not isinstance(version, str) or parse_version(version) is None:
        remedy = "write the version of the release, like 0.1.0: the image's tag is none"
        raise InvalidSpec("spec.release.version", version, remedy)
    return image, version


def reads_config(version: str) -> bool:
    """Whether the cluster version operator of this release can be started with `--config`.

    A pre-release of the first one counts too.
    """
    parsed = parse_version(version)
    first = FIRST_WITH_CONFIG
    return parsed is not None and (parsed.major, parsed.minor, parsed.patch) >= (
        first.major,
        first.minor,
        first.patch,
    )


def _tag(image: str) -> str:
    """The tag of an image, as a version; empty if it has none."""
    name = image.partition("@")[0].rpartition("/")[2]
    # A tag cannot have the `+` of build metadata.
    return name.partition(":")[2].replace("_", "+")
