"""Which config entry the API server's refusal of a Deployment is about. Pure.

The server names fields by position, as `spec.template.spec.containers[0].env[2].name`. The ledger
of the merge says which source set what is there.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from quarterdeck.operators.subscriptions.config.faults import ConfigFailureReason, ConfigFault
from quarterdeck.operators.subscriptions.config.merge import MergedDeployment
from quarterdeck.operators.subscriptions.config.origins import (
    LIST_KEYS,
    POD,
    UNKEYED_LISTS,
    container_path,
    item_path,
    unkeyed,
)

_CONTAINER = re.compile(r"^(?P<part>containers|initContainers)\[(?P<at>\d+)\]\.?(?P<rest>.*)$")
_ITEM = re.compile(r"^(?P<name>\w+)(\[(?P<at>[^\]]*)\])?(\.(?P<rest>.*))?$")
_CONFIG = re.compile(r"^config\[(\d+)\]$")

_REASONS = {
    "env": ConfigFailureReason.ENV,
    "envFrom": ConfigFailureReason.ENV_FROM,
    "volumes": ConfigFailureReason.VOLUME,
    "volumeMounts": ConfigFailureReason.VOLUME_MOUNT,
    "tolerations": ConfigFailureReason.TOLERATION,
    "nodeSelector": ConfigFailureReason.NODE_SELECTOR,
    "affinity": ConfigFailureReason.AFFINITY,
    "annotations": ConfigFailureReason.ANNOTATION,
}


def refused_entries(
    result: MergedDeployment, causes: Iterable[tuple[str, str]]
) -> tuple[list[ConfigFault], list[str]]:
    """The faults of the config in a refusal, and the messages that are about something else.

    `causes` are the field and the message of each cause.
    """
    faults: list[ConfigFault] = []
    others: list[str] = []
    for field, message in causes:
        fault = _fault(result, field, message)
        if fault is None:
            others.append(f"{field}: {message}" if field else message)
        else:
            faults.append(fault)
    return faults, others


def _fault(result: MergedDeployment, field: str, message: str) -> ConfigFault | None:
    for path, name, rest in _candidates(result, field):
        source = _CONFIG.match(result.ledger.source(path))
        reason = _reason(name, rest)
        if source and reason:
            return ConfigFault(
                entry=int(source[1]),
                reason=reason,
                field=f"{name}.{rest}".rstrip(".") if name == "resources" else name,
                deployment=result.name,
                cause=message,
            )
    return None


def _reason(name: str, rest: str) -> ConfigFailureReason | None:
    if name == "resources":
        return (
            ConfigFailureReason.RESOURCE_LIMIT
            if rest.startswith("limits")
            else ConfigFailureReason.RESOURCE_REQUEST
        )
    return _REASONS.get(name)


def _candidates(result: MergedDeployment, field: str) -> Iterator[tuple[str, str, str]]:
    """The units that a field of a refusal can be, each with its name and the rest of the field."""
    deployment = result.deployment
    for prefix in ("metadata.annotations", "spec.template.metadata.annotations"):
        if field.startswith(prefix):
            owner: Any = deployment
            for step in prefix.split("."):
                owner = owner.get(step) or {}
            yield from ((item_path(prefix, key), "annotations", "") for key in owner)
    if not field.startswith(f"{POD}."):
        return
    rest = field.removeprefix(f"{POD}.")
    owner, path = deployment["spec"]["template"]["spec"], POD
    if match := _CONTAINER.match(rest):
        containers = owner.get(match["part"]) or []
        if int(match["at"]) >= len(containers):
            return
        owner = containers[int(match["at"])]
        path = container_path(owner, init=match["part"] == "initContainers")
        rest = match["rest"]
    found = _ITEM.match(rest)
    if found is None:
        return
    name, at, below = found["name"], found["at"], found["rest"] or ""
    if name not in (*LIST_KEYS, *UNKEYED_LISTS):
        first = re.split(r"[.\[]", below)[0]
        yield f"{path}.{name}" + (f".{first}" if name == "affinity" else ""), name, below
        return
    items = owner.get(name) or []
    chosen = [items[int(at)]] if at and at.isdecimal() and int(at) < len(items) else items
    for item in chosen:
        key = item.get(LIST_KEYS[name], "") if name in LIST_KEYS else unkeyed(item)
        yield item_path(f"{path}.{name}", key), name, below
