"""How ClusterVersion's conditions put it: what is waited for, what is wrong, how far it is."""

from collections.abc import Sequence

from quarterdeck.operators.cluster_version.sync.progress import Fault, Progress

SHOWN = 5
"""How many of many things are named."""


def working_towards(version: str, progress: Progress | None) -> str:
    """Where a release that is being applied stands, in one line."""
    if progress is None or not progress.total:
        return f"Working towards {version}"
    share = 100 * progress.done // progress.total
    text = (
        f"Working towards {version}: {progress.done} of {progress.total} done ({share}% complete)"
    )
    return f"{text}, waiting on {_listed(progress.waiting)}" if progress.waiting else text


def fault_reason(faults: Sequence[Fault]) -> str:
    """One word for all of them."""
    reasons = {fault.reason for fault in faults}
    return reasons.pop() if len(reasons) == 1 else "MultipleErrors"


def fault_message(faults: Sequence[Fault]) -> str:
    """All of them with file and object, one a line where there are several."""
    if len(faults) == 1:
        return _told(faults[0])
    lines = [f"* {_told(fault)}" for fault in faults[:SHOWN]]
    if len(faults) > SHOWN:
        lines.append(f"* and {len(faults) - SHOWN} more")
    return "\n".join(["several things are wrong:", *lines])


def fault_summary(faults: Sequence[Fault]) -> str:
    """The same in one line."""
    if len(faults) == 1:
        return faults[0].message
    return f"{len(faults)} things are wrong, among them {_listed(faults)}"


def _told(fault: Fault) -> str:
    return f"{fault.manifest}: {fault.message}"


def _listed(faults: Sequence[Fault]) -> str:
    names = list(dict.fromkeys(short_name(fault) for fault in faults))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def short_name(fault: Fault) -> str:
    """What a fault is about, as people call it: `ingress` for a cluster operator.

    `Deployment.apps/ns/x` of any other kind becomes `Deployment ns/x`.
    """
    kind, _, name = fault.manifest.rpartition(": ")[2].partition("/")
    kind = kind.partition(".")[0]
    return name if kind == "ClusterOperator" or not name else f"{kind} {name}"
