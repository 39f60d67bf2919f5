"""Resolves a container's environment and arguments, with `$(VAR)` in command and args. Pure.

The input is the pod's spec, the ConfigMaps and Secrets that it names, and facts of the pod and the
node. A reference that cannot be resolved raises `UnresolvedError`, which the agent reports on the
container.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.pod.quantities import in_units_of

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class UnresolvedError(Exception):
    """A reference of the pod cannot be resolved: field, value, remedy."""

    def __init__(self, field: str, value: str, remedy: str) -> None:
        super().__init__(f"{field}: {value}: {remedy}")
        self.field, self.value, self.remedy = field, value, remedy


class NotYetError(UnresolvedError):
    """A reference cannot be resolved yet; nobody has to act."""


class VariableSources(msgspec.Struct, frozen=True, kw_only=True):
    """The input for a pod's references."""

    pod: Object
    config_maps: Mapping[str, Object] = {}
    """By name, in the pod's namespace."""
    secrets: Mapping[str, Object] = {}
    pod_ip: str = ""
    host_ip: str = "127.0.0.1"
    capacity: Mapping[str, str] = {}
    """The node's capacity, for a resourceFieldRef without a limit."""


def config_map_data(config_map: Object) -> dict[str, bytes]:
    """A ConfigMap's entries, text and binary alike."""
    text = {key: value.encode() for key, value in (config_map.get("data") or {}).items()}
    binary = config_map.get("binaryData") or {}
    return text | {key: base64.b64decode(value) for key, value in binary.items()}


def secret_data(secret: Object) -> dict[str, bytes]:
    """A Secret's entries, decoded."""
    return {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}


def expand(text: str, variables: Mapping[str, str]) -> str:
    """The text with known `$(VAR)` and `$$` replaced; an unknown `$(VAR)` stays."""

    def replaced(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0])

    return _REFERENCE.sub(replaced, text)


def environment(
    container: dict[str, Any], sources: VariableSources, base: Mapping[str, str]
) -> dict[str, str]:
    """The container's variables, in the kubelet's order: base, envFrom, env; later ones win."""
    variables = dict(base)
    for index, source in enumerate(container.get("envFrom") or []):
        variables |= _env_from(source, sources, f"envFrom[{index}]")
    for entry in container.get("env") or []:
        value = _value(entry, container, sources, variables)
        if value is not None:
            variables[entry["name"]] = value
    return variables


def command(
    container: dict[str, Any], entrypoint: list[str], variables: Mapping[str, str]
) -> list[str]:
    """The expanded command line: the command or the image's entrypoint, then the args."""
    given = container.get("command") or []
    words = [expand(word, variables) for word in given] or entrypoint
    return [*words, *(expand(word, variables) for word in container.get("args") or [])]


def field_value(path: str, sources: VariableSources) -> str:
    """A field of the pod, as in the downward API."""
    pod, meta, spec = sources.pod, sources.pod["metadata"], sources.pod["spec"]
    if match := _SUBSCRIPT.fullmatch(path):
        return str((meta.get(match[1]) or {}).get(match[2], ""))
    if path in ("metadata.labels", "metadata.annotations"):
        entries = meta.get(path.removeprefix("metadata.")) or {}
        return "\n".join(f"{key}={_quoted(value)}" for key, value in sorted(entries.items()))
    known = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta.get("namespace", ""),
        "metadata.uid": meta.get("uid", ""),
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.podIP": sources.pod_ip,
        "status.podIPs": sources.pod_ip,
        "status.hostIP": sources.host_ip,
        "status.hostIPs": sources.host_ip,
    }
    if path not in known:
        raise UnresolvedError(
            "fieldRef.fieldPath", path, f"pod {pod['metadata']['name']} has no such field here"
        )
    return str(known[path])


def resource_value(
    reference: dict[str, Any], container: dict[str, Any], sources: VariableSources
) -> str:
    """A container's request or limit in units of the divisor, rounded up."""
    name = reference["resource"]
    kind, _, resource = name.partition(".")
    given = (container.get("resources") or {}).get(kind) or {}
    quantity = given.get(resource)
    if quantity is None:
        # Without a limit the node's capacity counts; without a request 0.
        quantity = sources.capacity.get(resource, "0") if kind == "limits" else "0"
    try:
        return str(in_units_of(str(quantity), str(reference.get("divisor") or "1")))
    except ValueError as error:
        raise UnresolvedError("resourceFieldRef.resource", name, str(error)) from error


def _env_from(source: dict[str, Any], sources: VariableSources, field: str) -> dict[str, str]:
    prefix = source.get("prefix", "")
    if reference := source.get("configMapRef"):
        data = _entries("ConfigMap", reference, sources.config_maps, field)
    elif reference := source.get("secretRef"):
        data = _entries("Secret", reference, sources.secrets, field)
    else:
        raise UnresolvedError(field, str(source), "name a configMapRef or a secretRef")
    return {prefix + key: value.decode(errors="replace") for key, value in data.items()}


def _value(
    entry: dict[str, Any],
    container: dict[str, Any],
    sources: VariableSources,
    so_far: Mapping[str, str],
) -> str | None:
    """One variable's value; None for an optional reference that does not exist."""
    origin = entry.get("valueFrom")
    if not origin:
        return expand(entry.get("value", ""), so_far)
    field = f"env {entry['name']}"
    if reference := origin.get("fieldRef"):
        return field_value(reference["fieldPath"], sources)
    if reference := origin.get("resourceFieldRef"):
        of = reference.get("containerName") or container["name"]
        return resource_value(reference, _container(of, sources.pod), sources)
    if reference := origin.get("configMapKeyRef"):
        data = _entries("ConfigMap", reference, sources.config_maps, field)
    elif reference := origin.get("secretKeyRef"):
        data = _entries("Secret", reference, sources.secrets, field)
    else:
        raise UnresolvedError(field, ", ".join(origin), "this node cannot give a value from there")
    if reference["key"] in data:
        return data[reference["key"]].decode(errors="replace")
    if reference.get("optional"):
        return None
    raise UnresolvedError(field, reference["key"], f"add this key to {reference['name']}")


def _entries(
    kind: str, reference: dict[str, Any], objects: Mapping[str, Object], field: str
) -> dict[str, bytes]:
    """The entries of a ConfigMap or Secret; none if an optional one is missing."""
    found = objects.get(reference["name"])
    if found is not None:
        return config_map_data(found) if kind == "ConfigMap" else secret_data(found)
    if reference.get("optional"):
        return {}
    raise UnresolvedError(
        field, f'{kind.lower()} "{reference["name"]}" not found', f"create the {kind}"
    )


def _container(name: str, pod: Object) -> dict[str, Any]:
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        if container["name"] == name:
            return dict(container)
    raise UnresolvedError("resourceFieldRef.containerName", name, "name a container of this pod")


def _quoted(value: str) -> str:
    """A value in the format of the downward API: a quoted Go string."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(char, char) for char in value) + '"'
