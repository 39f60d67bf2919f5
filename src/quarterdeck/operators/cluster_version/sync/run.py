"""Brings a cluster to a release and keeps it there."""

from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias

from quarterdeck.operators.cluster_version.payload.graph import Mode
from quarterdeck.operators.cluster_version.payload.model import Manifest
from quarterdeck.operators.cluster_version.sync.cluster import Cluster
from quarterdeck.operators.cluster_version.sync.progress import Progress

Report: TypeAlias = Callable[[Progress], None]
"""Told each time that something changed; comes back at once."""


async def run_payload(
    manifests: Sequence[Manifest], mode: Mode, cluster: Cluster, report: Report
) -> Progress:
    """Apply the manifests that count, given in file order, and wait for what they start.

    Initializing and updating come back when everything is done, however long that takes: what
    fails is reported and tried again. Reconciling comes back after one pass, done or not.
    """
    raise NotImplementedError


async def keep_payload(manifests: Sequence[Manifest], cluster: Cluster, report: Report) -> NoReturn:
    """Reconcile every 2 to 4 minutes, and an object at once when it changes or goes."""
    raise NotImplementedError
