"""What a supervisor is asked to run, in a form that can be handed to another process."""

from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.binaries import Binaries


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster is to have in it."""

    static_pods: Path | None = None
    """A directory of manifests that the node this-machine runs without the API server."""
    operators: tuple[str, ...] = ()
    """The operators to bring, by name; those of the payload are brought by it."""
    payload: bool = False
    """Let a release install all operators that are delivered by one."""
    changes: dict[str, Object] = {}
    """What is different, by kind, in the operators' own objects where they are created."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to run and where."""

    state: Path
    binaries: Binaries
    api_port: int | None = None
    foreground: bool = False
    contents: Contents = Contents()


def encode(order: Order) -> bytes:
    """The order as JSON."""
    return msgspec.json.encode(order, enc_hook=str)


def decode(text: bytes) -> Order:
    """The order that was encoded."""
    return msgspec.json.decode(text, type=Order, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    return kind(value)
