"""InstallPlans: which one waits, what its version changes, and what it breaks. Pure."""

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import UPGRADE_WARNING
from quarterdeck.console.pages.progress import conditions_in


class WaitingPlan(msgspec.Struct, frozen=True, kw_only=True):
    """An InstallPlan that waits for an approval."""

    name: str
    uid: str
    version: str
    csv: str
    replaces: str


def waiting_plan(plan: Object | None) -> WaitingPlan | None:
    """The plan if it waits for an approval."""
    spec = (plan or {}).get("spec") or {}
    if plan is None or spec.get("approved"):
        return None
    return WaitingPlan(
        name=plan["metadata"]["name"],
        uid=plan["metadata"]["uid"],
        version=plan["metadata"]["resourceVersion"],
        csv=", ".join(map(str, spec.get("clusterServiceVersionNames") or ())),
        replaces=str(spec.get("replaces") or ""),
    )


class WaitingUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """What an update that waits changes and breaks."""

    csv: str = ""
    breaks: tuple[str, ...] = ()
    """What of the config would no longer apply."""
    deployments: tuple[Object, ...] = ()
    """The Deployments that change, with the fields before and after."""
    unknown: str = ""
    """Why the changes are not known."""


def upgrade_warning(subscription: Object) -> str:
    """What the operator itself says that the next version breaks; empty if nothing."""
    found = conditions_in(subscription).get(UPGRADE_WARNING) or {}
    return str(found.get("message") or "") if found.get("status") == "True" else ""


def next_version(comparison: Object, told: str) -> WaitingUpdate:
    """The next version from a comparison, and from what the operator says."""
    breaks = tuple(map(str, comparison.get("breaks") or ()))
    return WaitingUpdate(
        csv=str(comparison.get("csv") or ""),
        breaks=breaks or ((told,) if told else ()),
        deployments=tuple(comparison.get("deployments") or ()),
        unknown=str(comparison.get("why") or ""),
    )
