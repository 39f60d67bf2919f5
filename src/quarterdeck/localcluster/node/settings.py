"""The settings of the node's agent."""

from pathlib import Path, PurePosixPath

import msgspec

from quarterdeck.backoff import RestartBackoff
from quarterdeck.localcluster.components import THIS_MACHINE
from quarterdeck.localcluster.node.images import Installation
from quarterdeck.localcluster.node.pod.lifecycle import CONTAINER_BACKOFF
from quarterdeck.localcluster.node.sandbox.isolation import Isolation

LEASE_SECONDS = 40
CAPACITY = {"cpu": "10k", "memory": "100Ti", "ephemeral-storage": "1Pi", "pods": "250"}
"""Above that of any machine, since limits are not enforced; a /24 has addresses for 250 pods."""


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the agent runs pods."""

    name: str = THIS_MACHINE
    pods: Path
    """The pods' files: `<uid>/volumes/<volume>`, `<uid>/logs/<container>/<run>.log`."""
    manifests: tuple[Path, ...] = ()
    """The directories of static pods."""
    api_host: str
    api_port: int
    """The API server's address for pods."""
    masked: tuple[PurePosixPath, ...] = ()
    """Paths that pods must not see: the cluster's state, kubeconfigs."""
    shown: tuple[PurePosixPath, ...] = ()
    """Paths inside the masked ones that pods may still mount by hostPath: releases."""
    credentials: PurePosixPath | None = None
    """The directory of the static pods' credentials; each pod may mount its own."""
    installation: Installation
    root: bool
    """Whether pods may have their own users: the agent is root, and uses namespaces."""
    isolation: Isolation = Isolation.NAMESPACES
    back_off: RestartBackoff = CONTAINER_BACKOFF
    token_share: float = 0.8
    """The share of a token's lifetime after which it is renewed."""
    lease_seconds: int = LEASE_SECONDS
    """The duration of the node's Lease."""
    capacity: dict[str, str] = msgspec.field(default_factory=CAPACITY.copy)
