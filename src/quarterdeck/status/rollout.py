"""Whether an applied object is ready: definitions, roll-outs of workloads, Jobs. Pure.

An object of any other kind is ready when it exists. The message has the progress of a roll-out, and
changes with it, so that a caller can detect a roll-out without progress.

Roll-outs are judged as by `kubectl rollout status`, with two additions: pods that the server
refuses are a failure at once, not after the progress deadline, and objects whose pods somebody
replaces by hand (OnDelete), which kubectl does not judge, are ready when their pods are.
"""

from typing import Any, TypeAlias

import msgspec

from quarterdeck.api.meta import Object


class Done(msgspec.Struct, frozen=True):
    """The object is as desired, and ready; it may have a message all the same."""

    reason: str = ""
    message: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """The object is not ready yet; check again when it changes, and after some time."""

    reason: str
    message: str


class Failed(msgspec.Struct, frozen=True):
    """The object failed; retry with back-off."""

    reason: str
    message: str


Outcome: TypeAlias = Done | Waiting | Failed

DONE = Done()


def definition(live: Object) -> Outcome:
    """A CustomResourceDefinition is ready when the server serves it."""
    conditions = _conditions(live)
    if conditions.get("Established", {}).get("status") == "True":
        return DONE
    names = conditions.get("NamesAccepted", {})
    if names.get("status") == "False":
        message = f"its names are not accepted: {_reason(names)}; rename it, or remove the other"
        return Failed("DefinitionNamesNotAccepted", message)
    return Waiting("DefinitionNotEstablished", "the API server does not serve it yet")


def deployment(live: Object) -> Outcome:
    """A Deployment is ready when all replicas are up to date and available."""
    status = live.get("status") or {}
    conditions = _conditions(live)
    if is_unobserved(live):
        return Waiting(
            "DeploymentNotReady", "its controller has not observed its latest generation yet"
        )
    wanted = (live.get("spec") or {}).get("replicas", 1)
    updated, available, there = (
        int(status.get(field) or 0)
        for field in ("updatedReplicas", "availableReplicas", "replicas")
    )
    progressing = conditions.get("Progressing", {})
    is_late = progressing.get("reason") == "ProgressDeadlineExceeded"
    if updated >= wanted and available >= updated and there <= updated and not is_late:
        return DONE
    counts = f"{available} of {wanted} replicas are available, {updated} up to date"
    failure = conditions.get("ReplicaFailure", {})
    if failure.get("status") == "True":
        return Failed("DeploymentNotReady", f"{counts}: {_reason(failure)}")
    if is_late or progressing.get("status") == "False":
        message = f"{counts}: {_reason(progressing)}; look at the pods of the Deployment"
        return Failed("DeploymentNotReady", message)
    if (live.get("spec") or {}).get("paused"):
        return Waiting("DeploymentNotReady", f"{counts}: it is paused; set spec.paused to false")
    return Waiting("DeploymentNotReady", counts)


def daemon_set(live: Object) -> Outcome:
    """A DaemonSet is ready when each of its nodes has an available pod that is up to date."""
    if is_unobserved(live):
        return Waiting(
            "DaemonSetNotReady", "its controller has not observed its latest generation yet"
        )
    status = live.get("status") or {}
    wanted, updated, available = (
        int(status.get(field) or 0)
        for field in ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
    )
    if available >= wanted and (updated >= wanted or _is_updated_by_hand(live)):
        return DONE
    return Waiting(
        "DaemonSetNotReady",
        f"on {available} of {wanted} nodes its pod is available, on {updated} it is up to date",
    )


def stateful_set(live: Object) -> Outcome:
    """A StatefulSet is ready when all replicas are ready and up to date.

    Replicas below the partition of its update strategy need not be up to date.
    """
    if is_unobserved(live):
        message = "its controller has not observed its latest generation yet"
        return Waiting("StatefulSetNotReady", message)
    spec, status = live.get("spec") or {}, live.get("status") or {}
    wanted = spec.get("replicas", 1)
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    latest = 0 if _is_updated_by_hand(live) else wanted - int(rolling.get("partition") or 0)
    updated, ready = (int(status.get(field) or 0) for field in ("updatedReplicas", "readyReplicas"))
    if updated >= latest and ready >= wanted:
        return DONE
    counts = f"{ready} of {wanted} replicas are ready, {updated} up to date"
    return Waiting("StatefulSetNotReady", counts)


def job(live: Object) -> Outcome:
    """A Job is ready when it has completed."""
    conditions = _conditions(live)
    if conditions.get("Complete", {}).get("status") == "True":
        return DONE
    failed = conditions.get("Failed", {})
    if failed.get("status") == "True":
        message = f"{_reason(failed)}; see the logs of its pods, and delete the Job to run it again"
        return Failed("JobFailed", message)
    if (live.get("spec") or {}).get("suspend"):
        return Waiting("JobNotComplete", "it is suspended; set spec.suspend to false")
    status = live.get("status") or {}
    active, ready, lost = (int(status.get(field) or 0) for field in ("active", "ready", "failed"))
    counts = f"{ready} of {active} pods are ready, {lost} have failed"
    return Waiting("JobNotComplete", counts)


READINESS = {
    ("apiextensions.k8s.io", "CustomResourceDefinition"): definition,
    ("apps", "Deployment"): deployment,
    ("apps", "DaemonSet"): daemon_set,
    ("apps", "StatefulSet"): stateful_set,
    ("batch", "Job"): job,
}
"""By group and kind: the rule; objects of other kinds are ready at once."""


def is_unobserved(live: Object) -> bool:
    """Whether its controller has not seen the latest generation: its status is about another."""
    observed = (live.get("status") or {}).get("observedGeneration") or 0
    return bool(observed < live["metadata"].get("generation", 0))


def _is_updated_by_hand(live: Object) -> bool:
    """Whether pods are replaced only when somebody deletes them."""
    strategy = (live.get("spec") or {}).get("updateStrategy") or {}
    return bool(strategy.get("type") == "OnDelete")


def _conditions(live: Object) -> dict[str, Object]:
    found: Any = (live.get("status") or {}).get("conditions") or ()
    return {str(condition.get("type")): condition for condition in found}


def _reason(condition: Object) -> str:
    words = [str(condition.get(field) or "") for field in ("reason", "message")]
    return ": ".join(word for word in words if word) or "no reason given"
