"""The payload engine, as the runner wants it."""

from quarterdeck.operators.cluster_version.sync import Cluster, Progress, keep_payload, run_payload
from quarterdeck.operators.cluster_version.version.runner import Report
from quarterdeck.operators.cluster_version.version.work import Work


class PayloadEngine:
    """Applies and keeps payloads in one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def run(self, work: Work, report: Report) -> Progress:
        """Bring the cluster there; come back when it is."""
        return await run_payload(work.manifests, work.mode, self._cluster, report)

    async def keep(self, work: Work, report: Report) -> None:
        """Keep it there, until cancelled."""
        await keep_payload(work.manifests, self._cluster, report)
