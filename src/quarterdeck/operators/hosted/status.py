"""The status of a HostedCluster and of its control plane. Pure."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from quarterdeck.api.conditions import Condition
from quarterdeck.api.meta import Object
from quarterdeck.feature_gates import FEATURE_GATE_NAME, LOG_LEVEL_GATE
from quarterdeck.operators.hosted.release import FIRST_WITH_CONFIG, reads_config
from quarterdeck.status import merge_conditions, rollout
from quarterdeck.status.report import UNDATED

VALID, APPLIED, AVAILABLE = "ValidConfiguration", "OperatorConfigurationApplied", "Available"
_AS_EXPECTED = "AsExpected"
_STALLED = ("Progressing", "False")
"""The condition of a Deployment without progress for as long as it allows."""


def desired_status(obj: Object, conditions: Iterable[Condition], now: datetime) -> Object:
    """The status with these conditions; all else in it stays."""
    was = obj.get("status") or {}
    old = msgspec.convert(was.get("conditions") or [], tuple[Condition, ...])
    # A list, as the server sends it: a tuple with the same entries would be a difference.
    merged = msgspec.to_builtins(list(merge_conditions(old, conditions, now)))
    generation = obj["metadata"].get("generation", 0)
    return {**was, "observedGeneration": generation, "conditions": merged}


def faulty_status(obj: Object, reason: str, message: str, now: datetime) -> Object:
    """The status of a HostedCluster that cannot be reconciled, with the reason."""
    return desired_status(obj, [_condition(VALID, reason, message)], now)


def valid() -> Condition:
    """The condition of a spec without a fault."""
    return _condition(VALID)


def applied(*, gate_on: bool, gates_version: str, release: str) -> Condition:
    """Whether `spec.operatorConfiguration` reaches the hosted cluster's operators."""
    if not gate_on:
        return _condition(
            APPLIED,
            "FeatureGateOff",
            f"the feature gate {LOG_LEVEL_GATE} is off for version {gates_version} in the status "
            f"of FeatureGate {FEATURE_GATE_NAME}, so spec.operatorConfiguration is ignored; "
            "enable it in this cluster",
        )
    if not reads_config(release):
        first = FIRST_WITH_CONFIG
        return _condition(
            APPLIED,
            "ReleaseTooOld",
            f"release {release} reads no configuration file, so its cluster version operator logs "
            f"at its default; update to {first.major}.{first.minor}.{first.patch} or later",
        )
    return _condition(APPLIED)


def available(deployment: Object | None) -> Condition:
    """Whether a replica of the hosted cluster version operator is available."""
    if deployment is None:
        return _condition(AVAILABLE, "NoKubeconfig", "it has no kubeconfig that can be used")
    status = deployment.get("status") or {}
    if status.get("availableReplicas"):
        return _condition(AVAILABLE)
    reason, message = "DeploymentNotReady", "no replica of its operator is available yet"
    if any((it["type"], it["status"]) == _STALLED for it in status.get("conditions") or ()):
        # Only now: before, numbers and short-lived failures would be a write each.
        outcome = rollout.deployment(deployment)
        reason, message = outcome.reason or reason, outcome.message or message
    return _condition(AVAILABLE, reason, message)


def _condition(type_: str, reason: str = _AS_EXPECTED, message: str = "") -> Condition:
    """The condition, which holds if there is nothing to say about it."""
    return Condition(
        type=type_,
        status="False" if message else "True",
        reason=reason,
        message=message,
        last_transition_time=UNDATED,
    )
