"""The messages of ClusterVersion's conditions: progress, waits and faults."""

from collections.abc import Sequence

from quarterdeck.operators.cluster_version.sync.progress import ManifestFault, PayloadProgress
from quarterdeck.status.release_progress import (
    MAX_LISTED,
    ReleaseProgress,
    listed,
    progress_message,
)


def working_towards(version: str, progress: PayloadProgress | None) -> str:
    """The progress of a release, in one line."""
    if progress is None:
        return progress_message(version, None)
    names = _names(progress.waiting)
    shown = ReleaseProgress(
        done=progress.done,
        total=progress.total,
        waiting=names[:MAX_LISTED],
        more=max(0, len(names) - MAX_LISTED),
    )
    return progress_message(version, shown)


def fault_reason(faults: Sequence[ManifestFault]) -> str:
    """One reason for all faults."""
    reasons = {fault.reason for fault in faults}
    return reasons.pop() if len(reasons) == 1 else "MultipleErrors"


def fault_message(faults: Sequence[ManifestFault]) -> str:
    """All faults with file and object; several faults get a line each."""
    if len(faults) == 1:
        return _told(faults[0])
    lines = [f"* {_told(fault)}" for fault in faults[:MAX_LISTED]]
    if len(faults) > MAX_LISTED:
        lines.append(f"* and {len(faults) - MAX_LISTED} more")
    return "\n".join(["several things are wrong:", *lines])


def fault_summary(faults: Sequence[ManifestFault]) -> str:
    """All faults in one line."""
    if len(faults) == 1:
        return faults[0].message
    return f"{len(faults)} things are wrong, among them {listed(_names(faults))}"


def _told(fault: ManifestFault) -> str:
    return f"{fault.manifest}: {fault.message}"


def _names(faults: Sequence[ManifestFault]) -> tuple[str, ...]:
    """The short names of the faults' objects, each once."""
    return tuple(dict.fromkeys(short_name(fault) for fault in faults))


def short_name(fault: ManifestFault) -> str:
    """The short name of a fault's object: `ingress` for a cluster operator.

    `Deployment.apps/ns/x` of any other kind becomes `Deployment ns/x`.
    """
    kind, _, name = fault.manifest.rpartition(": ")[2].partition("/")
    kind = kind.partition(".")[0]
    return name if kind == "ClusterOperator" or not name else f"{kind} {name}"
