"""Says at Debug which manifests of the payload are skipped, and why.

Told when it is news: when the payload or what it is judged against has changed, and when somebody
has turned the log level up. `quarterdeck payload why` has all the reasons; this is the first one.
"""

from quarterdeck import log as logs
from quarterdeck.payload.filters import excluded_by
from quarterdeck.payload.model import Payload
from quarterdeck.payload.observed import ObservedCluster

log = logs.get_logger("cluster_version.payload")


class SkippedManifests:
    """Remembers what was told."""

    def __init__(self) -> None:
        self._told: tuple[str, ObservedCluster] | None = None

    def tell(self, payload: Payload, payload_hash: str, observed: ObservedCluster) -> None:
        """A line for each manifest that does not count, unless that is known."""
        if not logs.enabled(logs.DEBUG):
            self._told = None
            return
        if self._told == (payload_hash, observed):
            return
        self._told = (payload_hash, observed)
        for manifest in payload.manifests:
            verdict = excluded_by(manifest, observed)
            if verdict is not None:
                log.v(logs.DEBUG).info(
                    "manifest skipped",
                    manifest=manifest.place,
                    why=verdict.reason,
                    filter=verdict.filter,
                )
