"""A release payload, live: apply its manifests, wait for what they start, keep them so.

Which payload is run, and in which mode, is decided by others. `Cluster` is the API server as it
is seen here; `run_payload` brings the cluster to a release, and `keep_payload` keeps it there.

    async with Cluster(manager.client, now=manager.now) as cluster:
        await run_payload(manifests, Mode.UPDATING, cluster, report)
        await keep_payload(manifests, cluster, report)

Both can be cancelled at any point and begun again: all state is in the API's objects.
"""

from quarterdeck.operators.cluster_version.sync.cluster import Cluster
from quarterdeck.operators.cluster_version.sync.plan import FIELD_MANAGER
from quarterdeck.operators.cluster_version.sync.progress import Fault, Progress
from quarterdeck.operators.cluster_version.sync.run import keep_payload, run_payload

__all__ = ["FIELD_MANAGER", "Cluster", "Fault", "Progress", "keep_payload", "run_payload"]
