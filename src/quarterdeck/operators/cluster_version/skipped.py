"""Logs at Debug which manifests of the payload are skipped, and why.

It logs them when the payload or the observed cluster changes, and when somebody raises the log
level. `quarterdeck payload why` shows all reasons for a manifest; the log has the first one.
"""

from quarterdeck import log as logs
from quarterdeck.payload.filters import excluded_by
from quarterdeck.payload.model import Payload
from quarterdeck.payload.observed import ObservedCluster

log = logs.get_logger("cluster_version.payload")


class SkippedManifests:
    """Logs the skipped manifests, and remembers what it has logged."""

    def __init__(self) -> None:
        self._last: tuple[str, ObservedCluster] | None = None

    def log_new(self, payload: Payload, payload_hash: str, observed: ObservedCluster) -> None:
        """Log a line for each skipped manifest, unless the log has these lines already."""
        if not logs.enabled(logs.DEBUG):
            self._last = None
            return
        if self._last == (payload_hash, observed):
            return
        self._last = (payload_hash, observed)
        for manifest in payload.manifests:
            verdict = excluded_by(manifest, observed)
            if verdict is not None:
                log.v(logs.DEBUG).info(
                    "manifest skipped",
                    manifest=manifest.place,
                    why=verdict.reason,
                    filter=verdict.filter,
                )
