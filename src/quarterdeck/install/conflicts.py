"""Decides what of a plan is not applied, because of objects that are in the cluster. Pure.

- An object that somebody else made is not taken over: the installation is refused. A namespace of
  somebody else is used as it is.
- What Helm installed is left to Helm.
- An object that is being deleted would vanish after it was applied, so the installation waits.
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from quarterdeck.api.meta import CRDS, NAMESPACES, Object
from quarterdeck.install.facts import Identity, identity, managers_of
from quarterdeck.install.plan import AppliedStep, InstallationPlan
from quarterdeck.install.preflight import PreflightFinding, error, warning
from quarterdeck.install.removal import LOCAL, Own, helm_release, is_ours
from quarterdeck.status.definitions import is_foreign

Live = Mapping[Identity, Object]

MAX_NAMED = 8


def beside(plan: InstallationPlan, live: Live, own: Own) -> InstallationPlan:
    """The plan without what others have; refused if that does not do."""
    deleted = [one for one, obj in live.items() if obj["metadata"].get("deletionTimestamp")]
    theirs = {
        identity(obj)
        for applied in (*plan.steps, *plan.later)
        for obj in applied.step.objects
        if (found := live.get(identity(obj))) is not None and is_conflict(applied, obj, found, own)
    }
    spaces = {one for one in theirs if one[0] == NAMESPACES.kind}
    by_helm = {one: helm_release(obj) for one, obj in live.items() if helm_release(obj)}
    taken = sorted(theirs - spaces - by_helm.keys())
    findings: list[PreflightFinding] = []
    if deleted:
        findings.append(
            error(
                f"{named(sorted(deleted))} is being deleted: wait until it is gone, or end an "
                "uninstall that has stopped: quarterdeck uninstall"
            )
        )
    if taken:
        owners = {one: managers_of(live[one]) for one in taken}
        findings.append(
            error(
                f"somebody else made {named(taken, owners)}: they are not taken over; delete or "
                "rename them first"
            )
        )
    if spaces:
        findings.append(
            warning(
                f"used as it is, because others made it: {named(sorted(spaces))}; who may create "
                "pods there can use the rights of the operators"
            )
        )
    findings += [
        warning(f"left to Helm, which has it as the release {helm}; change it by: helm upgrade")
        for helm in sorted(set(by_helm.values()))
    ]
    if deleted or taken:
        return msgspec.structs.replace(
            plan, findings=(*plan.findings, *findings), steps=(), later=()
        )
    return msgspec.structs.replace(
        plan,
        findings=(*plan.findings, *findings),
        steps=_without(plan.steps, spaces | by_helm.keys()),
        later=_without(plan.later, spaces | by_helm.keys()),
    )


def is_conflict(applied: AppliedStep, obj: Object, live: Object, own: Own) -> bool:
    """Whether somebody else made the object that a step would apply."""
    if obj["kind"] == CRDS.kind or applied.step.create_only or applied.shared:
        return False
    if obj["kind"] == NAMESPACES.kind:
        entries = live["metadata"].get("managedFields") or ()
        local = any(entry.get("manager") == LOCAL for entry in entries)
        return not local and not is_ours(live | {"kind": NAMESPACES.kind}, own)
    return is_foreign(live)


def named(some: Collection[Identity], owners: Mapping[Identity, str] | None = None) -> str:
    """Objects for people; the first of them if they are many."""
    shown = [_name(one) + (f" ({owners[one]})" if owners else "") for one in some]
    more = f" and {len(shown) - MAX_NAMED} more" if len(shown) > MAX_NAMED else ""
    return ", ".join(shown[:MAX_NAMED]) + more


def _name(one: Identity) -> str:
    kind, namespace, name = one
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _without(steps: Iterable[AppliedStep], left: Collection[Identity]) -> tuple[AppliedStep, ...]:
    found = []
    for applied in steps:
        kept = tuple(obj for obj in applied.step.objects if identity(obj) not in left)
        if kept:
            step = msgspec.structs.replace(applied.step, objects=kept)
            found.append(msgspec.structs.replace(applied, step=step))
    return tuple(found)
