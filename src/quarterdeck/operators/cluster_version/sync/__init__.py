"""Applies a release payload: writes its manifests, waits for their roll-outs, reverts drift.

The `version` package decides which payload is applied, and in which mode. `Cluster` reads and
writes objects; `run_payload` brings the cluster to a release, and `keep_payload` keeps it there.

    async with Cluster(manager.client) as cluster:
        await run_payload(manifests, Mode.UPDATING, cluster, report)
        await keep_payload(manifests, cluster, report)

Both can be cancelled at any point and started again: all state is in the API objects.
"""

from quarterdeck.operators.cluster_version.sync.cluster import Cluster
from quarterdeck.operators.cluster_version.sync.plan import FIELD_MANAGER
from quarterdeck.operators.cluster_version.sync.progress import ManifestFault, PayloadProgress
from quarterdeck.operators.cluster_version.sync.run import keep_payload, run_payload

__all__ = [
    "FIELD_MANAGER",
    "Cluster",
    "ManifestFault",
    "PayloadProgress",
    "keep_payload",
    "run_payload",
]
