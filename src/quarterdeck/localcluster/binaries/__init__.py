"""Finds, downloads or builds the programs of a local control plane.

The rest of the package calls only `ensure_binaries`.
"""

from quarterdeck.localcluster.binaries.catalog import (
    ALL,
    CONTAINERD_VERSION,
    COREDNS_VERSION,
    ETCD_VERSION,
    KUBERNETES_VERSION,
    KWOK_VERSION,
    REAL_NODES,
)
from quarterdeck.localcluster.binaries.ensure import Binaries, ensure_binaries
from quarterdeck.localcluster.binaries.errors import BinariesUnavailable
from quarterdeck.localcluster.binaries.progress import Progress, progress_on
from quarterdeck.localcluster.binaries.settings import BinarySettings

__all__ = [
    "ALL",
    "CONTAINERD_VERSION",
    "COREDNS_VERSION",
    "ETCD_VERSION",
    "KUBERNETES_VERSION",
    "KWOK_VERSION",
    "REAL_NODES",
    "Binaries",
    "BinariesUnavailable",
    "BinarySettings",
    "Progress",
    "ensure_binaries",
    "progress_on",
]
