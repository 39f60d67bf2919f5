"""What `quarterdeck log-level` shows and writes. Pure; `inspect` makes the requests."""

import json
from datetime import datetime, timedelta

import msgspec

from quarterdeck.api.config_v1 import ClusterVersion, FeatureGate, FeatureSet
from quarterdeck.api.meta import Object
from quarterdeck.feature_gates import FEATURE_GATE_NAME, LOG_LEVEL_GATE, entry_for, gate_is_on
from quarterdeck.operators.cluster_version.log_level.decision import expiry_of, unobserved
from quarterdeck.operators.cluster_version.log_level.expiry import ANNOTATION, Expiry
from quarterdeck.operators.cluster_version.log_level.levels import (
    LEVELS,
    NORMAL,
    asked_level,
    known_level,
)


class LevelObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects that decide the log level."""

    config: Object
    gates: FeatureGate | None
    version: ClusterVersion | None


def operator_version(seen: LevelObjects) -> str:
    """The version of the cluster version operator's release; empty if it is not known."""
    if seen.version is not None and seen.version.status is not None:
        return seen.version.status.desired.version
    entries = seen.gates.status.feature_gates if seen.gates else ()
    return entries[0].version if len(entries) == 1 else ""


def why_gate_is_off(seen: LevelObjects) -> str:
    """Why the log level is ignored, and the remedy; empty if it is not ignored."""
    version = operator_version(seen)
    if gate_is_on(seen.gates, version, LOG_LEVEL_GATE):
        return ""
    head = f"the feature gate {LOG_LEVEL_GATE} is off, so the log level is ignored: "
    if seen.gates is None:
        return head + f"there is no FeatureGate {FEATURE_GATE_NAME}; create it, with an empty spec"
    if entry_for(seen.gates, version) is None:
        others = ", ".join(entry.version for entry in seen.gates.status.feature_gates)
        return (
            f"{head}FeatureGate {FEATURE_GATE_NAME} says nothing about version "
            f"{version or '(none is known)'}, only about {others or 'none'}; the cluster version "
            "operator adds its own version where nobody else writes that status: see whether it "
            "runs, with: kubectl get pods --namespace openshift-cluster-version"
        )
    return head + _why_listed_off(seen.gates)


def _why_listed_off(gates: FeatureGate) -> str:
    custom = gates.spec.custom_no_upgrade
    chosen = gates.spec.effective_feature_set
    if chosen == FeatureSet.CUSTOM_NO_UPGRADE and custom and LOG_LEVEL_GATE in custom.disabled:
        left = [gate for gate in custom.disabled if gate != LOG_LEVEL_GATE]
        on = _patched({"customNoUpgrade": {"disabled": left}})
        return f"FeatureGate cluster has it in spec.customNoUpgrade.disabled; turn it on with: {on}"
    enabled = [*(custom.enabled if custom else ()), LOG_LEVEL_GATE]
    on = _patched({"featureSet": "CustomNoUpgrade", "customNoUpgrade": {"enabled": enabled}})
    return (
        f"it is not part of the feature set {chosen or 'Default'}; turn it on, with a feature set "
        f"that cannot be left again and holds updates back, with: {on}"
    )


def _patched(spec: Object) -> str:
    patch = json.dumps({"spec": spec})
    return f"kubectl patch featuregate {FEATURE_GATE_NAME} --type=merge -p '{patch}'"


class LevelView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The log level as it is shown."""

    level: str
    verbosity: int
    in_force: bool
    """Whether the cluster version operator has applied it."""
    generation: int
    observed_generation: int
    until: str | None = None
    then: str | None = None
    ignored_because: str | None = None


def level_view(seen: LevelObjects) -> LevelView:
    """The level that the object asks for, and whether it is in force."""
    level = known_level(asked_level(seen.config)) or NORMAL
    expiry = expiry_of(seen.config)
    counts = expiry is not None and expiry.level == level
    off = why_gate_is_off(seen)
    status = seen.config.get("status") or {}
    return LevelView(
        level=level,
        verbosity=LEVELS[level],
        in_force=not off and unobserved(seen.config) is None,
        generation=seen.config["metadata"].get("generation", 0),
        observed_generation=status.get("observedGeneration", 0),
        until=expiry.until.isoformat().replace("+00:00", "Z") if expiry and counts else None,
        then=expiry.then if expiry and counts else None,
        ignored_because=off or None,
    )


def level_patch(config: Object, level: str, lasting: timedelta | None, now: datetime) -> Object:
    """The merge patch that sets a level, for good or for a limited time.

    After a limited time the earlier level returns. If that one is limited too, the level before all
    limited ones returns.
    """
    expiry = None
    if lasting is not None and (then := _level_after(config, level)) != level:
        expiry = str(Expiry(level=level, until=_rounded_up(now + lasting), then=then))
    return {
        "metadata": {"annotations": {ANNOTATION: expiry}},
        "spec": {"operatorLogLevel": level},
    }


def _level_after(config: Object, level: str) -> str:
    before = known_level(asked_level(config)) or NORMAL
    running = expiry_of(config)
    if running is not None and running.level == before:
        before = running.then
    return NORMAL if before == level else before


def _rounded_up(time: datetime) -> datetime:
    """The next whole second, so that the level does not expire early."""
    if not time.microsecond:
        return time
    return time.replace(microsecond=0) + timedelta(seconds=1)
