"""What is wrong with a config, and the two conditions that say so. Pure.

A fault names the entry, the field, the Deployment and the cause. The Deployments that it concerns
keep the spec that was last applied; others go on.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operators_v1alpha1 import ConfigEntry, NamedDeployment
from quarterdeck.controller import InvalidSpec
from quarterdeck.controller.selection import selector_in
from quarterdeck.kube.quantity import parse_quantity
from quarterdeck.operators.subscriptions.config.merge import (
    MergedDeployment,
    applies,
    selected_containers,
)
from quarterdeck.operators.subscriptions.config.references import (
    ConfigReference,
    references,
)


class ConfigFailureReason(StrEnum):
    """The reasons of ConfigFailure, in order of precedence; the last two are for our own fields."""

    ENV = "EnvFailure"
    ENV_FROM = "EnvFromFailure"
    VOLUME = "VolumeFailure"
    VOLUME_MOUNT = "VolumeMountFailure"
    TOLERATION = "TolerationFailure"
    NODE_SELECTOR = "NodeSelectorFailure"
    RESOURCE_REQUEST = "ResourceRequestFailure"
    RESOURCE_LIMIT = "ResourceLimitFailure"
    AFFINITY = "AffinityFailure"
    ANNOTATION = "AnnotationFailure"


ORDER = tuple(ConfigFailureReason)

LONGEST_SHOWN = 100
NO_PODS = "No operator pods found matching selector."


class ConfigFault(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A field of an entry that cannot be applied to a Deployment."""

    entry: int
    reason: ConfigFailureReason
    field: str
    """The field within the entry, such as `volumeMounts[0]`."""
    deployment: str
    cause: str

    def __str__(self) -> str:
        named = f"Deployment {self.deployment}"
        where = "" if named in self.cause else f" ({named})"
        return f"config[{self.entry}].{self.field}: {self.cause}{where}"


Lookup = Callable[[ConfigReference], str]
"""Why a reference to a ConfigMap or Secret cannot be resolved; empty if it can."""


def resolves(_reference: ConfigReference) -> str:
    """Every reference resolves: for a check without a cluster."""
    return ""


def config_faults(
    result: MergedDeployment, config: Sequence[ConfigEntry], lookup: Lookup = resolves
) -> list[ConfigFault]:
    """What cannot be applied to this Deployment, found without the API server."""
    found: list[ConfigFault] = []
    if result.too_large:
        return [
            ConfigFault(
                entry=result.entries[0],
                reason=ConfigFailureReason.ENV,
                field="env",
                deployment=result.name,
                cause=result.too_large,
            )
        ]
    for index in result.entries:
        for reason, field, cause in _entry_faults(config[index], result, lookup):
            found.append(
                ConfigFault(
                    entry=index, reason=reason, field=field, deployment=result.name, cause=cause
                )
            )
    return found


def _entry_faults(
    entry: ConfigEntry, result: MergedDeployment, lookup: Lookup
) -> Iterator[tuple[ConfigFailureReason, str, str]]:
    pod: Object = result.deployment["spec"]["template"]["spec"]
    # What is for containers concerns no Deployment that has none of them.
    has_containers = any(True for _ in selected_containers(entry, pod))
    for position, item in enumerate(entry.env if has_containers else ()):
        if item.get("value") and item.get("valueFrom"):
            name = item.get("name", "")
            yield (
                ConfigFailureReason.ENV,
                f"env[{position}]",
                f'"{name}" has both value and valueFrom',
            )
    for reference in references(entry):
        if not has_containers and reference.reason in (
            ConfigFailureReason.ENV,
            ConfigFailureReason.ENV_FROM,
        ):
            continue
        if why := lookup(reference):
            yield ConfigFailureReason(reference.reason), reference.field, why
    if not has_containers:
        return
    yield from _mounts_without_volume(entry, result)
    yield from _resource_faults(entry.resources or {})


def _mounts_without_volume(
    entry: ConfigEntry, result: MergedDeployment
) -> Iterator[tuple[ConfigFailureReason, str, str]]:
    pod: Object = result.deployment["spec"]["template"]["spec"]
    volumes = {volume.get("name") for volume in pod.get("volumes") or ()}
    for position, mount in enumerate(entry.volume_mounts):
        if mount.get("name") not in volumes:
            cause = f"no volume named {mount.get('name')} in Deployment {result.name}"
            yield ConfigFailureReason.VOLUME_MOUNT, f"volumeMounts[{position}]", cause


def _resource_faults(resources: Object) -> Iterator[tuple[ConfigFailureReason, str, str]]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for part, values, reason in (
        ("requests", requests, ConfigFailureReason.RESOURCE_REQUEST),
        ("limits", limits, ConfigFailureReason.RESOURCE_LIMIT),
    ):
        for name, value in values.items():
            parsed = parse_quantity(value)
            if parsed is None or parsed < 0:
                yield (
                    reason,
                    f"resources.{part}.{name}",
                    f"{_shown(value)} is no quantity of 0 or more",
                )
    for name, value in requests.items():
        wanted, most = parse_quantity(value), parse_quantity(limits.get(name, ""))
        if wanted is not None and most is not None and wanted > most:
            yield (
                ConfigFailureReason.RESOURCE_REQUEST,
                f"resources.requests.{name}",
                f"{value} is above the limit {limits[name]}",
            )


def _shown(value: object) -> str:
    """The value for people; what is very long is cut, and a number of thousands of digits named."""
    if isinstance(value, int) and value.bit_length() > LONGEST_SHOWN:
        return "the number"
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


class SelectorFault(msgspec.Struct, frozen=True):
    """An entry that applies to no Deployment."""

    entry: int
    reason: str
    message: str

    def __str__(self) -> str:
        return f"config[{self.entry}]: {self.message}"


def selector_faults(
    config: Sequence[ConfigEntry], deployments: Sequence[NamedDeployment]
) -> list[SelectorFault]:
    """The entries that match no Deployment of the CSV, or name a container that none has."""
    found = []
    for index, entry in enumerate(config):
        try:
            selector_in(f"config[{index}].selector", entry.selector)
        except InvalidSpec as error:
            found.append(SelectorFault(index, "InvalidSelector", str(error)))
            continue
        matching = [one for one in deployments if applies(entry, one, index)]
        if not matching:
            found.append(SelectorFault(index, "NoMatchingPods", NO_PODS))
            continue
        there = {name for one in matching for name in container_names(one)}
        if missing := [name for name in entry.containers if name not in there]:
            names = ", ".join(missing)
            message = f"{NO_PODS} No matching Deployment has a container named {names}."
            found.append(SelectorFault(index, "NoMatchingPods", message))
    return found


def container_names(deployment: NamedDeployment) -> list[str]:
    """The names of all containers of the Deployment, init containers too."""
    pod = (deployment.spec.get("template") or {}).get("spec") or {}
    return [
        container.get("name", "")
        for part in ("containers", "initContainers")
        for container in pod.get(part) or ()
    ]


def first_reason(faults: Iterable[ConfigFault]) -> ConfigFailureReason:
    """The reason of the condition: the first in the order of `ConfigFailureReason`."""
    return min((fault.reason for fault in faults), key=ORDER.index)


def message_of(faults: Iterable[ConfigFault | SelectorFault]) -> str:
    """All faults, each once, for the message of a condition."""
    return "; ".join(dict.fromkeys(str(fault) for fault in faults))
