"""The objects of a bundle, kept packed: a catalog has thousands, and few are ever used. Pure.

At the load of a catalog each object is only checked to be JSON with a kind and a name, which takes
a tenth of the time of decoding it. `unpacked` decodes strictly.
"""

import zlib
from collections.abc import Sequence

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.strict_yaml import Document, Refusal, decode_json

PACKED_FROM = 2048
"""Bytes from which compression is worth its time."""
MAX_OBJECT = 4 << 20
"""The most bytes of an object; etcd accepts objects up to 1.5 MiB."""


class _Named(msgspec.Struct):
    name: str


class _Identified(msgspec.Struct):
    kind: str
    metadata: _Named


_DECODER = msgspec.json.Decoder(_Identified)


class PackedManifest(msgspec.Struct, frozen=True):
    """An object as JSON text, perhaps compressed."""

    data: bytes
    is_packed: bool

    def text(self) -> bytes:
        """The JSON text."""
        return zlib.decompress(self.data) if self.is_packed else self.data


class BadManifest(Exception):  # noqa: N818 - reads as what it is
    """Why an object cannot be used, and the remedy, for people."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}")
        self.message = message
        self.remedy = remedy


def packed(text: bytes) -> PackedManifest:
    """The object for keeping, once it was checked; `BadManifest` if it is no object."""
    if len(text) > MAX_OBJECT:
        raise BadManifest(f"has more than {MAX_OBJECT >> 20} MiB", "make it smaller")
    try:
        _DECODER.decode(text)
    except msgspec.ValidationError:
        raise BadManifest(
            "has no kind, or its metadata no name", "put a Kubernetes object there"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadManifest(f"not JSON: {error}", "encode JSON in base64") from None
    except RecursionError:
        raise BadManifest("nested too deep", "flatten it") from None
    if len(text) < PACKED_FROM:
        return PackedManifest(text, is_packed=False)
    return PackedManifest(zlib.compress(text, 1), is_packed=True)


def unpacked(manifests: Sequence[PackedManifest]) -> list[Object]:
    """The objects; `BadManifest` if one is not what Kubernetes accepts as JSON."""
    found: list[Object] = []
    for position, manifest in enumerate(manifests):
        documents = list(decode_json(manifest.text().decode()))
        match documents:
            case [Document(value={"kind": str(), "metadata": {"name": str()}} as value)]:
                found.append(value)
            case [Refusal(message=message, remedy=remedy), *_]:
                raise BadManifest(f"its object {position}: {message}", remedy)
            case _:
                raise BadManifest(f"its object {position} is no object", "write one object")
    return found
