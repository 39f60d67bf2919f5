"""Reads and sets the log level of a hosted cluster, for the command line and the console.

The level goes from the HostedCluster to the HostedControlPlane, to the ConfigMap, and from there to
a file that the hosted cluster version operator follows. What is shown has each of these steps, and
where the level stopped.
"""

import asyncio
import time
from datetime import timedelta

import msgspec

from quarterdeck.api.hypershift_v1beta1 import HOSTED_CLUSTERS, HOSTED_CONTROL_PLANES
from quarterdeck.api.meta import CONFIG_MAPS, Key, Object
from quarterdeck.api.operator_v1alpha1 import CLUSTER_VERSION_OPERATORS, LogLevel
from quarterdeck.controller import InvalidSpec
from quarterdeck.kube import Client
from quarterdeck.operators.hosted.desired import CONFIG_KEY, level_of
from quarterdeck.operators.hosted.names import CONFIG_MAP, control_plane_namespace
from quarterdeck.operators.hosted.status import APPLIED, VALID
from quarterdeck.strict_yaml import Document, decode_yaml

POLL_PERIOD = 0.1
FIELD_MANAGER = "quarterdeck-cli"
DEFAULT = "Normal"
UNSET = "unset"
MISSING = "missing"
INVALID = "invalid"
_OPERATOR_HINT = (
    "see whether the hosted operator runs, with: kubectl get pods --namespace hypershift"
)


class HostedLevelError(Exception):
    """Why the level cannot be shown or set, and what to do, in one line."""


class LevelStep(msgspec.Struct, frozen=True, kw_only=True):
    """The level in one object on its way."""

    kind: str
    name: str
    level: str
    """The level; `unset` if the object has none, `missing` if there is no such object, `invalid`
    if the operator does not use the file."""


class HostedLevelView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The level of a hosted cluster, step by step."""

    level: str
    in_file: bool
    """Whether the level has reached the operator's configuration file."""
    steps: tuple[LevelStep, ...]
    stopped_at: str | None = None
    """The kind of the last object that the level has reached."""
    because: str | None = None


class HostedLevelObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects on the way of a level."""

    cluster: Object
    plane: Object | None
    config_map: Object | None


async def hosted_level(client: Client, key: Key) -> HostedLevelView:
    """The level of a hosted cluster at each step, and where it stopped."""
    return level_view(await _look(client, key))


async def set_hosted_level(
    client: Client, key: Key, level: str, timeout: timedelta
) -> tuple[HostedLevelView, HostedLevelView]:
    """Set the level, wait until it is in the file, and return the level before and after."""
    seen = await _look(client, key)
    if why := _message(seen.cluster, APPLIED):
        raise HostedLevelError(why)
    before = level_view(seen)
    patch = {
        "spec": {"operatorConfiguration": {"clusterVersionOperator": {"operatorLogLevel": level}}}
    }
    await client.patch(
        HOSTED_CLUSTERS.plain, key.name, patch, key.namespace, field_manager=FIELD_MANAGER
    )
    deadline = time.monotonic() + timeout.total_seconds()
    while not (view := level_view(await _look(client, key))).in_file:
        if time.monotonic() > deadline:
            raise HostedLevelError(
                f"{level} was accepted, but stopped at the {view.stopped_at} for "
                f"{timeout.total_seconds():g} s: {view.because}"
            )
        await asyncio.sleep(POLL_PERIOD)
    return before, view


def level_view(seen: HostedLevelObjects) -> HostedLevelView:
    """The level at each step. Pure."""
    steps = (
        _step(HOSTED_CLUSTERS.kind, seen.cluster, _configured(seen.cluster)),
        _step(HOSTED_CONTROL_PLANES.kind, seen.plane, _configured(seen.plane)),
        _step(CONFIG_MAPS.kind, seen.config_map, _level_in_file(seen.config_map)),
    )
    wanted = steps[0].level
    arrived = all(step.level == wanted for step in steps)
    because = _why_stopped(seen.cluster, arrived=arrived)
    return HostedLevelView(
        level=DEFAULT if wanted == UNSET else wanted,
        in_file=arrived and not because,
        steps=steps,
        stopped_at=_last_reached(steps) if because else None,
        because=because or None,
    )


def _last_reached(steps: tuple[LevelStep, ...]) -> str:
    last = steps[0]
    for step in steps[1:]:
        if step.level != last.level:
            break
        last = step
    return last.kind


def _why_stopped(cluster: Object, *, arrived: bool) -> str:
    """Why the level does not reach the operator; empty if it does."""
    if (why := _message(cluster, APPLIED)) or arrived:
        return why
    not_yet = f"the hosted operator has not copied it yet; {_OPERATOR_HINT}"
    return _message(cluster, VALID) or not_yet


def _message(cluster: Object, type_: str) -> str:
    """The message of a condition that is False; empty if it is not."""
    for condition in (cluster.get("status") or {}).get("conditions") or []:
        if condition["type"] == type_ and condition["status"] == "False":
            return str(condition["message"])
    return ""


def _step(kind: str, obj: Object | None, level: str) -> LevelStep:
    if obj is None:
        return LevelStep(kind=kind, name="-", level=MISSING)
    meta = obj["metadata"]
    return LevelStep(kind=kind, name=f"{meta['namespace']}/{meta['name']}", level=level)


def _configured(obj: Object | None) -> str:
    """The level in the object's spec, as it is shown."""
    try:
        level = level_of(((obj or {}).get("spec") or {}).get("operatorConfiguration"))
    except InvalidSpec as error:
        return str(error.value)[:20]
    return UNSET if level is None else level or DEFAULT


def _level_in_file(config_map: Object | None) -> str:
    """The level in the ConfigMap's file, as it is shown."""
    text = ((config_map or {}).get("data") or {}).get(CONFIG_KEY, "")
    expected = CLUSTER_VERSION_OPERATORS
    if not text.endswith("\n"):
        return INVALID  # it may be incomplete
    match list(decode_yaml(text)):
        case [
            Document(
                value={
                    "apiVersion": expected.api_version,
                    "kind": expected.kind,
                    "spec": dict() as spec,
                }
            )
        ]:
            if "operatorLogLevel" not in spec:
                return UNSET
            level = spec["operatorLogLevel"]
            return str(level or DEFAULT) if level in list(LogLevel) else INVALID
        case _:
            return INVALID


async def _look(client: Client, key: Key) -> HostedLevelObjects:
    cluster = await client.find(HOSTED_CLUSTERS.plain, key.name, key.namespace)
    if cluster is None:
        raise HostedLevelError(
            f"there is no HostedCluster {key}; list them with: "
            "kubectl get hostedclusters --all-namespaces"
        )
    namespace = control_plane_namespace(key)
    return HostedLevelObjects(
        cluster=cluster,
        plane=await client.find(HOSTED_CONTROL_PLANES.plain, key.name, namespace),
        config_map=await client.find(CONFIG_MAPS, CONFIG_MAP, namespace),
    )
