"""The conditions that Degraded and Progressing follow from, one function for each. Pure.

A part holds, or does not for a reason. `health` knows how long each may not hold.
"""

from collections.abc import Iterator, Sequence

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1.ingress_controller import CONFIGURATION_ACCEPTED
from quarterdeck.operators.ingress.observed import Observed
from quarterdeck.status import rollout

ROLLED_OUT = "NewReplicaSetAvailable"
"""The reason of a Deployment's condition Progressing when its latest roll-out is complete."""
_STARTING = ("", "ContainerCreating", "PodInitializing")
"""The reasons for which a container that does not run yet is no failure."""
LISTED_PODS = 3
"""The most pods that a message names."""
MESSAGE_LIMIT = 500
"""The most characters of a router's message: a pod's status is not ours."""


class IngressCondition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition of an IngressController."""

    type: str
    holds: bool
    reason: str = "AsExpected"
    message: str = ""


def admitted(seen: Observed) -> IngressCondition:
    """The spec is valid, and is carried out."""
    found = seen.admission
    return IngressCondition(
        type="Admitted", holds=found.admitted, reason=found.reason, message=found.message
    )


def pods_run(seen: Observed) -> IngressCondition:
    """No pod is refused by all nodes, and no container fails to start."""
    failing = [f"pod {name}: {why}" for name, why in failing_pods(seen.pods)]
    if not failing:
        return IngressCondition(type="PodsRunning", holds=True)
    return IngressCondition(
        type="PodsRunning", holds=False, reason="PodsFailing", message=listed(failing, LISTED_PODS)
    )


def configuration_is_accepted(seen: Observed) -> IngressCondition:
    """No router keeps an earlier configuration because HAProxy refuses the latest one."""
    type_ = "ConfigurationAccepted"
    refused = [
        f"pod {pod['metadata']['name']}: {str(found.get('message') or '')[:MESSAGE_LIMIT]}"
        for pod in sorted(seen.pods, key=lambda one: str(one["metadata"]["name"]))
        if not pod["metadata"].get("deletionTimestamp")
        and (found := condition_of(pod, CONFIGURATION_ACCEPTED)).get("status") == "False"
    ]
    if not refused:
        return IngressCondition(type=type_, holds=True)
    return IngressCondition(
        type=type_, holds=False, reason="Refused", message=listed(refused, LISTED_PODS)
    )


def min_replicas_are_available(seen: Observed) -> IngressCondition:
    """As many replicas are available as a roll-out keeps."""
    type_ = "DeploymentReplicasMinAvailable"
    if seen.deployment is None:
        return IngressCondition(
            type=type_, holds=False, reason="NoDeployment", message="there is none yet"
        )
    found = condition_of(seen.deployment, "Available")
    if found.get("status") == "True":
        return IngressCondition(type=type_, holds=True)
    message = f"{counts(seen.deployment)}, fewer than a roll-out keeps"
    return IngressCondition(type=type_, holds=False, reason="TooFewReplicas", message=message)


def all_replicas_are_available(seen: Observed) -> IngressCondition:
    """Every replica is available."""
    type_ = "DeploymentReplicasAllAvailable"
    if seen.deployment is None:
        return IngressCondition(
            type=type_, holds=False, reason="NoDeployment", message="there is none yet"
        )
    available, wanted = available_replicas(seen.deployment), wanted_replicas(seen.deployment)
    if available >= wanted:
        return IngressCondition(type=type_, holds=True)
    return IngressCondition(
        type=type_, holds=False, reason="ReplicasMissing", message=counts(seen.deployment)
    )


def is_rolled_out(seen: Observed) -> bool:
    """Whether all pods are of the latest template, and were available once."""
    return isinstance(rollout_of(seen), rollout.Done)


def rollout_of(seen: Observed) -> rollout.Outcome:
    """How far the roll-out is. A pod that is lost after it does not begin it again."""
    live = seen.deployment
    if live is None:
        return rollout.Waiting("DeploymentMissing", "the Deployment does not exist yet")
    outcome = rollout.deployment(live)
    status = live.get("status") or {}
    updated = int(status.get("updatedReplicas") or 0)
    complete = (
        condition_of(live, "Progressing").get("reason") == ROLLED_OUT
        and int(status.get("observedGeneration") or 0) >= live["metadata"].get("generation", 0)
        and int(status.get("replicas") or 0) <= updated
        and updated >= wanted_replicas(live)
    )
    return rollout.DONE if complete else outcome


def load_balancer_is_pending(seen: Observed) -> bool:
    """Whether the Service waits for the address of its load balancer."""
    if seen.controller.strategy.type != "LoadBalancerService":
        return False
    status = (seen.service or {}).get("status") or {}
    return not (status.get("loadBalancer") or {}).get("ingress")


def failing_pods(pods: tuple[Object, ...]) -> Iterator[tuple[str, str]]:
    """The name of each pod that fails, and why."""
    for pod in sorted(pods, key=lambda one: str(one["metadata"]["name"])):
        if pod["metadata"].get("deletionTimestamp"):
            continue
        status = pod.get("status") or {}
        scheduled: Object = next(
            (one for one in status.get("conditions") or () if one.get("type") == "PodScheduled"), {}
        )
        if scheduled.get("status") == "False":
            words = scheduled.get("message") or scheduled.get("reason") or "no reason given"
            yield pod["metadata"]["name"], f"no node takes it: {words}"
            continue
        for container in status.get("containerStatuses") or ():
            waiting = (container.get("state") or {}).get("waiting") or {}
            if str(waiting.get("reason") or "") not in _STARTING:
                words = waiting.get("message") or "see its log"
                reason = f"container {container['name']}: {waiting['reason']}: {words}"
                yield pod["metadata"]["name"], reason
                break


def listed(lines: Sequence[str], most: int) -> str:
    """At most so many lines, and how many more there are."""
    more = len(lines) - most
    return "\n".join([*lines[:most], *([f"and {more} more"] if more > 0 else [])])


def condition_of(live: Object, type_: str) -> Object:
    """The condition of a Deployment or pod; empty if it has none of this type."""
    conditions = (live.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == type_), {})


def wanted_replicas(live: Object) -> int:
    """The replicas that a Deployment asks for."""
    return int((live.get("spec") or {}).get("replicas", 1))


def available_replicas(live: Object | None) -> int:
    """The replicas of a Deployment that are available."""
    return int(((live or {}).get("status") or {}).get("availableReplicas") or 0)


def counts(live: Object) -> str:
    """How many replicas are available, in words."""
    return f"{available_replicas(live)} of {wanted_replicas(live)} replicas are available"
