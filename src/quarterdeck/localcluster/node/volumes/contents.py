"""The contents of a pod's volumes, and the objects and tokens that a pod refers to. Pure.

The input is the pod's spec, the ConfigMaps and Secrets that it names, and its tokens.
`volumes.files` writes the files to disk, and `sandbox.mounts` plans where they are mounted.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.pod.containers import all_containers
from quarterdeck.localcluster.node.pod.environment import (
    NotYetError,
    UnresolvedError,
    VariableSources,
    config_map_data,
    field_value,
    resource_value,
    secret_data,
)

PRIVATE = 0o770
"""A mask for the mode of a Secret's or token's file, which denies access to others."""

FROM_FILES = ("configMap", "secret", "projected", "downwardAPI")
"""The kinds of volume whose files come from the API server; containers only read them."""

SUPPORTED = ("emptyDir", "hostPath", *FROM_FILES)


class File(msgspec.Struct, frozen=True):
    """One file of a volume."""

    data: bytes
    mode: int


class Token(msgspec.Struct, frozen=True):
    """A token that a pod needs: its audience, and its lifetime in seconds."""

    audience: str
    seconds: int


class References(msgspec.Struct, frozen=True, kw_only=True):
    """The objects and tokens that a pod needs."""

    config_maps: frozenset[str] = frozenset()
    secrets: frozenset[str] = frozenset()
    tokens: frozenset[Token] = frozenset()


def kind_of(volume: dict[str, Any]) -> str:
    """The kind of a volume; raises `UnresolvedError` for an unsupported one."""
    kind = next((key for key in volume if key != "name"), "emptyDir")
    if kind not in SUPPORTED:
        supported = ", ".join(SUPPORTED)
        raise UnresolvedError(f"volume {volume['name']}", kind, f"this node has only {supported}")
    return kind


def references(pod: Object) -> References:
    """The objects and tokens that the pod's volumes and variables refer to."""
    found = list(_references(pod))
    return References(
        config_maps=frozenset(name for kind, name in found if kind == "configMap"),
        secrets=frozenset(name for kind, name in found if kind == "secret"),
        tokens=frozenset(
            _token(source["serviceAccountToken"])
            for volume in pod["spec"].get("volumes") or []
            for source in _sources(volume)
            if "serviceAccountToken" in source
        ),
    )


def files_of(
    volume: dict[str, Any], sources: VariableSources, tokens: Mapping[Token, str]
) -> dict[str, File]:
    """A volume's files by their path, for the kinds in `FROM_FILES`."""
    kind = kind_of(volume)
    body = volume[kind]
    default = body.get("defaultMode", 0o644)
    files: dict[str, File] = {}
    for source in _sources(volume):
        files |= _source_files(source, volume["name"], default, sources, tokens)
    return files


def _references(pod: Object) -> Iterator[tuple[str, str]]:
    """The kind and name of each referenced ConfigMap and Secret."""
    for volume in pod["spec"].get("volumes") or []:
        for source in _sources(volume):
            for kind in ("configMap", "secret"):
                if kind in source and (name := _name(source[kind])):
                    yield kind, name
    for container in all_containers(pod):
        for entry in container.get("envFrom") or []:
            for kind in ("configMap", "secret"):
                if reference := entry.get(f"{kind}Ref"):
                    yield kind, reference["name"]
        for entry in container.get("env") or []:
            for kind in ("configMap", "secret"):
                if reference := (entry.get("valueFrom") or {}).get(f"{kind}KeyRef"):
                    yield kind, reference["name"]


def _sources(volume: dict[str, Any]) -> list[dict[str, Any]]:
    """A volume as a list of projections, for projected and plain volumes alike."""
    if "projected" in volume:
        return volume["projected"].get("sources") or []
    return [{kind: volume[kind]} for kind in FROM_FILES if kind in volume]


def _name(reference: dict[str, Any]) -> str:
    """The object's name, in `name` or, for a Secret volume, `secretName`."""
    return str(reference.get("secretName") or reference.get("name") or "")


def _token(projection: dict[str, Any]) -> Token:
    return Token(projection.get("audience", ""), int(projection.get("expirationSeconds", 3600)))


def _source_files(
    source: dict[str, Any],
    volume: str,
    default: int,
    sources: VariableSources,
    tokens: Mapping[Token, str],
) -> dict[str, File]:
    """The files of one projection."""
    if body := source.get("serviceAccountToken"):
        token = tokens.get(_token(body))
        if token is None:
            raise NotYetError(f"volume {volume}", "serviceAccountToken", "waiting for it")
        return {body["path"]: File(token.encode(), default & PRIVATE)}
    if body := source.get("downwardAPI"):
        return {
            item["path"]: File(_downward(item, sources), item.get("mode", default))
            for item in body.get("items") or []
        }
    for kind, objects, data_of, limit in (
        ("configMap", sources.config_maps, config_map_data, 0o777),
        ("secret", sources.secrets, secret_data, PRIVATE),
    ):
        if body := source.get(kind):
            found = objects.get(_name(body))
            if found is None and body.get("optional"):
                return {}
            if found is None:
                what = f'{kind.lower()} "{_name(body)}" not found'
                raise UnresolvedError(f"volume {volume}", what, f"create the {kind}")
            return _selected(body, data_of(found), volume, default, limit)
    raise UnresolvedError(f"volume {volume}", ", ".join(source), "this node cannot project it")


def _selected(
    body: dict[str, Any], data: dict[str, bytes], volume: str, default: int, limit: int
) -> dict[str, File]:
    """All entries, or those in `items` at their paths."""
    items = body.get("items")
    if items is None:
        return {key: File(value, default & limit) for key, value in data.items()}
    files = {}
    for item in items:
        if item["key"] in data:
            mode = item.get("mode", default) & limit
            files[item["path"]] = File(data[item["key"]], mode)
        elif not body.get("optional"):
            remedy = f"add this key to {_name(body)}"
            raise UnresolvedError(f"volume {volume}", item["key"], remedy)
    return files


def _downward(item: dict[str, Any], sources: VariableSources) -> bytes:
    if reference := item.get("fieldRef"):
        return field_value(reference["fieldPath"], sources).encode()
    reference = item["resourceFieldRef"]
    name = reference["containerName"]
    container = next(each for each in all_containers(sources.pod) if each["name"] == name)
    return resource_value(reference, container, sources).encode()
