"""What a supervisor is asked to run, in a form that can be handed to another process."""

from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.localcluster.binaries import Binaries


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What to run and where."""

    state: Path
    binaries: Binaries
    api_port: int | None = None
    foreground: bool = False
    sample: bool = False
    """Deploy the sample operator too."""
    static_pods: Path | None = None
    """A directory of manifests that the node this-machine runs without the API server."""
    staleness: bool = False
    """Run the staleness checker too."""
    payload: bool = False
    """Let the cluster version operator install everything, from Quarterdeck's own release."""
    cluster_version: bool = False
    """Run the cluster version operator too."""
    log_level: str | None = None
    """The level that the cluster version operator's configuration is created with."""


def encode(order: Order) -> bytes:
    """The order as JSON."""
    return msgspec.json.encode(order, enc_hook=str)


def decode(text: bytes) -> Order:
    """The order that was encoded."""
    return msgspec.json.decode(text, type=Order, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    return kind(value)
