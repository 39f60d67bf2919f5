"""What came of looking at one manifest, and where the whole payload stands.

What ClusterVersion says of it is decided by others.
"""

import msgspec

from quarterdeck.payload.graph import Mode
from quarterdeck.status.rollout import DONE, Done, Failed, Outcome, Waiting

__all__ = ["DONE", "Done", "Failed", "Fault", "Outcome", "Progress", "Waiting"]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What keeps one manifest from being done."""

    manifest: str
    """The file, and the object in it: `0000_30_x_01_deployment.yaml: Deployment.apps/ns/x`."""
    reason: str
    """One CamelCase word, as for a condition: `ClusterOperatorNotAvailable`, `Forbidden`."""
    message: str
    """What it is, and what can be done, for people."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a payload stands; a value that is made anew with each change."""

    mode: Mode
    done: int
    """How many manifests are applied and, where there is something to wait for, ready."""
    total: int
    run_level: str
    """The lowest run level that has a manifest which is not done: `0000_30`; empty when all are."""
    waiting: tuple[Fault, ...] = ()
    """What is on its way and is waited for; nothing that anybody has to act on."""
    faults: tuple[Fault, ...] = ()
    """What stops a manifest until somebody acts, or is tried again; all of them, in file order."""
    notes: tuple[Fault, ...] = ()
    """What is worth knowing of manifests that are done: a foreign definition left alone, say."""

    @property
    def completed(self) -> bool:
        """Whether every manifest is done."""
        return self.done == self.total
