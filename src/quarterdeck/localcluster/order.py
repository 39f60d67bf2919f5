"""What a supervisor has to run, as values that can be passed to another process."""

from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.binaries import Binaries


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """What to install into a cluster."""

    static_pods: Path | None = None
    """A directory of manifests that the node this-machine runs without the API server."""
    operators: tuple[str, ...] = ()
    """The names of the operators to deploy without a release."""
    payload: bool = False
    """Install all operators of a release by the cluster version operator."""
    changes: dict[str, Object] = {}
    """Changes to the operators' own objects at their creation, by kind."""


class ClusterOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Which cluster to run, and with which contents."""

    state: Path
    binaries: Binaries
    api_port: int | None = None
    foreground: bool = False
    real_nodes: int = 0
    """How many real nodes to run; with any, the contents are empty."""
    audit: bool = False
    """Write every request, without bodies, to the audit log."""
    contents: Contents = Contents()


def encode(order: ClusterOrder) -> bytes:
    """The order as JSON."""
    return msgspec.json.encode(order, enc_hook=str)


def decode(text: bytes) -> ClusterOrder:
    """The order in this JSON."""
    return msgspec.json.decode(text, type=ClusterOrder, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    return kind(value)
