"""The outcome of one manifest, and the progress of a whole payload.

The `version` package decides what ClusterVersion reports of it.
"""

import msgspec

from quarterdeck.payload.graph import Mode
from quarterdeck.status.rollout import DONE, Done, Failed, Outcome, Waiting

__all__ = ["DONE", "Done", "Failed", "ManifestFault", "Outcome", "PayloadProgress", "Waiting"]


class ManifestFault(msgspec.Struct, frozen=True, kw_only=True):
    """Why one manifest is not done, or a note about it."""

    manifest: str
    """The file, and the object in it: `0000_30_x_01_deployment.yaml: Deployment.apps/ns/x`."""
    reason: str
    """One CamelCase word, as for a condition: `ClusterOperatorNotAvailable`, `Forbidden`."""
    message: str
    """The fault and its remedy, for people."""


class PayloadProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a payload at one moment."""

    mode: Mode
    done: int
    """How many manifests are applied and ready."""
    total: int
    run_level: str
    """The lowest run level with a manifest that is not done: `0000_30`; empty if all are done."""
    waiting: tuple[ManifestFault, ...] = ()
    """The manifests that wait; nobody has to act."""
    faults: tuple[ManifestFault, ...] = ()
    """The manifests that fail until a retry succeeds or somebody acts; in file order."""
    notes: tuple[ManifestFault, ...] = ()
    """Notes about manifests that are done, such as a foreign definition that was left alone."""

    @property
    def completed(self) -> bool:
        """Whether every manifest is done."""
        return self.done == self.total
