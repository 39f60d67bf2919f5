"""The messages of ClusterVersion's conditions: progress, waits and faults."""

import re
from collections.abc import Sequence

from quarterdeck.operators.cluster_version.sync.progress import ManifestFault, PayloadProgress

MAX_LISTED = 5
"""The most names or faults that a message lists."""
_DONE_OF = re.compile(r"^Working towards \S+: (\d{1,9}) of (\d{1,9}) done ")


def working_towards(version: str, progress: PayloadProgress | None) -> str:
    """The progress of a release, in one line."""
    if progress is None or not progress.total:
        return f"Working towards {version}"
    share = 100 * progress.done // progress.total
    text = (
        f"Working towards {version}: {progress.done} of {progress.total} done ({share}% complete)"
    )
    return f"{text}, waiting on {_listed(progress.waiting)}" if progress.waiting else text


def progress_in(message: str) -> tuple[int, int] | None:
    """How many manifests are done, and of how many, in a message of `working_towards`."""
    found = _DONE_OF.search(message)
    return (int(found[1]), int(found[2])) if found else None


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
    return f"{len(faults)} things are wrong, among them {_listed(faults)}"


def _told(fault: ManifestFault) -> str:
    return f"{fault.manifest}: {fault.message}"


def _listed(faults: Sequence[ManifestFault]) -> str:
    names = list(dict.fromkeys(short_name(fault) for fault in faults))
    more = f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
    return ", ".join(names[:MAX_LISTED]) + more


def short_name(fault: ManifestFault) -> str:
    """The short name of a fault's object: `ingress` for a cluster operator.

    `Deployment.apps/ns/x` of any other kind becomes `Deployment ns/x`.
    """
    kind, _, name = fault.manifest.rpartition(": ")[2].partition("/")
    kind = kind.partition(".")[0]
    return name if kind == "ClusterOperator" or not name else f"{kind} {name}"
