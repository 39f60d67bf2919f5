"""What the node's agent is told when it starts."""

from pathlib import Path, PurePosixPath

import msgspec

from quarterdeck.localcluster.components import THIS_MACHINE
from quarterdeck.localcluster.node.images import Installation
from quarterdeck.localcluster.node.pod.lifecycle import BackOff
from quarterdeck.localcluster.node.sandbox.ways import Way

LEASE_SECONDS = 40
CAPACITY = {"cpu": "10k", "memory": "100Ti", "ephemeral-storage": "1Pi", "pods": "250"}
"""Far above any machine's, since nothing is measured out; the pods are what a /24 can name."""


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the agent runs pods."""

    name: str = THIS_MACHINE
    pods: Path
    """Where the pods' files are: `<uid>/volumes/<volume>`, `<uid>/logs/<container>/<run>.log`."""
    manifests: tuple[Path, ...] = ()
    """The directories of static pods."""
    api_host: str
    api_port: int
    """Where pods find the API server."""
    masked: tuple[PurePosixPath, ...] = ()
    """What pods must not see: the cluster's state, kubeconfigs."""
    shown: tuple[PurePosixPath, ...] = ()
    """What of that pods may mount by hostPath all the same: releases."""
    credentials: PurePosixPath | None = None
    """Where each static pod's credentials are, which that pod may mount."""
    installation: Installation
    root: bool
    """Whether pods may have users of their own: we are root, and there are namespaces."""
    way: Way = Way.NAMESPACES
    back_off: BackOff = BackOff()
    token_share: float = 0.8
    """The share of a token's life after which it is renewed."""
    lease_seconds: int = LEASE_SECONDS
    """For how long the node counts as alive after its last heartbeat."""
    capacity: dict[str, str] = msgspec.field(default_factory=CAPACITY.copy)
