"""AccessLoggingReady of an IngressController, from what its routers report. Pure.

A router knows whether its lines arrive, by a canary, and how many were lost. It says so in a
condition of its own pod, `quarterdeck.dev/AccessLoggingReady`. That takes the right to patch the
status of pods in the routers' namespace, and no connection between the operator and the routers.
Only pods that log as the Deployment asks now are taken into account: a router of an earlier
template may have another destination, or none.
"""

from collections.abc import Iterable

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import OperatorCondition
from quarterdeck.api.operator_v1.ingress_controller import ACCESS_LOGGING_READY
from quarterdeck.operators.ingress.parts import MESSAGE_LIMIT, condition_of, listed
from quarterdeck.operators.ingress.router_pod import ROUTER
from quarterdeck.status.report import UNDATED

TYPE = "AccessLoggingReady"
LISTED_PODS = 5
"""The most pods that the message names."""
_ON = "ROUTER_SYSLOG_ADDRESS"


def access_logging_ready(
    deployment: Object | None, pods: Iterable[Object]
) -> OperatorCondition | None:
    """Whether access lines arrive; None if access logging is off."""
    template = (deployment or {}).get("spec", {}).get("template") or {}
    if _ON not in (wanted := router_environment(template)):
        return None
    reports = [
        (pod["metadata"]["name"], _report(pod))
        for pod in sorted(pods, key=lambda one: str(one["metadata"]["name"]))
        if not pod["metadata"].get("deletionTimestamp") and router_environment(pod) == wanted
    ]
    bad = [(name, one) for name, one in reports if one.get("status") == "False"]
    if bad:
        return _condition("False", _reason(bad[0][1], "NotArriving"), _lines(bad))
    silent = [name for name, one in reports if one.get("status") != "True"]
    if silent or not reports:
        waiting = ", ".join(silent[:LISTED_PODS]) or "no pod logs like this yet"
        return _condition("Unknown", "NotReported", f"waiting for the report of: {waiting}")
    return _condition("True", "Arriving", _lines(reports))


def router_environment(pod: Object) -> dict[str, str]:
    """The variables with a value of the router in a pod, or in the template of pods."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    router: Object = next((one for one in containers if one.get("name") == ROUTER), {})
    return {one["name"]: one["value"] for one in router.get("env") or () if "value" in one}


def _report(pod: Object) -> Object:
    """What the router of a pod says; empty if it cannot know any more that lines arrive.

    A router that was killed leaves its last report on the pod.
    """
    found = condition_of(pod, ACCESS_LOGGING_READY)
    is_ready = condition_of(pod, "Ready").get("status", "True") == "True"
    return found if is_ready or found.get("status") != "True" else {}


def _lines(reports: Iterable[tuple[str, Object]]) -> str:
    said = [(name, str(one.get("message") or "")[:MESSAGE_LIMIT]) for name, one in reports]
    return listed([f"{name}: {message}" for name, message in said if message], LISTED_PODS)


def _reason(report: Object, absent: str) -> str:
    return str(report.get("reason") or absent)[:MESSAGE_LIMIT]


def _condition(status: str, reason: str, message: str) -> OperatorCondition:
    return OperatorCondition(
        type=TYPE, status=status, reason=reason, message=message, last_transition_time=UNDATED
    )
