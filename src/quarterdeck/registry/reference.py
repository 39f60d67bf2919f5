"""Names of images in a registry: `registry.example.test:5000/quarterdeck:1.0.0@sha256:…`. Pure.

A name without a registry (`quarterdeck:1.0.0`) is no reference here: there is no default registry.
"""

import msgspec

from quarterdeck.oci.model import is_digest
from quarterdeck.payload.images import is_image


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """An image by its registry, repository, and tag or digest or both."""

    registry: str
    """Host and port."""
    repository: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.name}{tag}{f'@{self.digest}' if self.digest else ''}"

    @property
    def name(self) -> str:
        """Registry and repository."""
        return f"{self.registry}/{self.repository}"

    def at(self, digest: str) -> "Reference":
        """The image of this digest in the same repository."""
        return Reference(registry=self.registry, repository=self.repository, digest=digest)

    def tagged(self, tag: str) -> "Reference":
        """The image of this tag in the same repository."""
        return Reference(registry=self.registry, repository=self.repository, tag=tag)


def parse_reference(text: str) -> Reference:
    """The reference in a text; ValueError, with what to write, if it is none."""
    name, _, digest = text.partition("@")
    if not is_image(text) or (digest and not is_digest(digest)):
        raise ValueError(
            f"{text[:200]!r} is no image reference with a SHA-256 digest or a tag; write one like"
            " registry.example.test/quarterdeck:1.0.0"
        )
    registry, slash, path = name.partition("/")
    if not slash or not ("." in registry or ":" in registry or registry == "localhost"):
        raise ValueError(
            f"{text[:200]!r} names no registry; write one before it:"
            f" registry.example.test/{text[:200]}"
        )
    repository, _, tag = path.partition(":")
    return Reference(
        registry=registry,
        repository=repository,
        tag=tag if tag or digest else "latest",
        digest=digest,
    )


def has_registry(text: str) -> bool:
    """Whether a text is a reference that a registry can be asked for."""
    try:
        parse_reference(text)
    except ValueError:
        return False
    return True


def digest_of(text: str) -> str:
    """The digest in an image reference; empty if it has none."""
    digest = text.rpartition("@")[2] if "@" in text else ""
    return digest if is_digest(digest) else ""
