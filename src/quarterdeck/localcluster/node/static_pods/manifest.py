"""Parses the manifest of a static pod, or reports its fault. Pure.

The API server has not validated the file, so the fields that the node uses are validated here.
`static` reads the files.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import yaml

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.volumes.contents import references

SOURCE = "kubernetes.io/config.source"
HASH = "kubernetes.io/config.hash"

MOST_NESTED = 100

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?")
_LISTS = ("volumes", "initContainers", "containers", "tolerations")
_LISTS_OF_CONTAINER = ("env", "envFrom", "volumeMounts", "ports")
_MAPPINGS_OF_CONTAINER = (
    *("securityContext", "lifecycle", "resources"),
    *("startupProbe", "livenessProbe", "readinessProbe"),
)


class BadManifestError(Exception):
    """A file is not a valid pod; the message gives the reason."""


def parse_manifest(data: bytes, node: str) -> Object:
    """The pod in a file, as it runs on this node; its uid is a hash of the file."""
    try:
        _check_depth(data)
        pod = yaml.load(data, Loader=yaml.CSafeLoader)  # it is the safe one
    except (yaml.YAMLError, ValueError) as error:
        raise BadManifestError(f"not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(pod, dict) or pod.get("kind") != "Pod":
        raise BadManifestError("not a Pod: kind must be Pod")
    meta, spec = _mapping(pod, "metadata"), _mapping(pod, "spec")
    _check_meta(meta)
    _check_spec(spec)
    digest = hashlib.sha256(data).hexdigest()[:32]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **meta,
            "name": f"{meta['name']}-{node}",
            "namespace": meta.get("namespace", "default"),
            "uid": digest,
            "resourceVersion": "",
            "annotations": {**(meta.get("annotations") or {}), SOURCE: "file", HASH: digest},
        },
        "spec": {"restartPolicy": "Always", **spec, "nodeName": node},
        "status": {},
    }


def _check_depth(data: bytes) -> None:
    """Refuse what is nested so deeply that the loader, which calls itself, would crash."""
    depth = 0
    for event in yaml.parse(data, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_NESTED:
            raise BadManifestError(f"nested more than {MOST_NESTED} times")


def _check_meta(meta: Mapping[str, Any]) -> None:
    if not meta.get("name"):
        raise BadManifestError("metadata.name is missing")
    for field, value in (("name", meta["name"]), ("namespace", meta.get("namespace", "default"))):
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise BadManifestError(
                f"metadata.{field}: {value!r}: use lower case letters, digits and '-'"
            )
    for field in ("labels", "annotations"):
        _mapping(meta, field, "metadata.")


def _check_spec(spec: Mapping[str, Any]) -> None:
    for field in _LISTS:
        _mappings(spec, field, "spec.")
    if not spec.get("containers"):
        raise BadManifestError("spec.containers is empty")
    if spec.get("serviceAccountName"):
        raise BadManifestError("spec.serviceAccountName: a static pod has no ServiceAccount")
    _mapping(spec, "securityContext", "spec.")
    volumes = {_named(volume, "spec.volumes") for volume in spec.get("volumes") or []}
    seen: set[str] = set()
    for field in ("initContainers", "containers"):
        for container in spec.get(field) or []:
            name = _named(container, f"spec.{field}")
            if name in seen:
                raise BadManifestError(f"spec.{field}: {name}: two containers have this name")
            seen.add(name)
            _check_container(container, f"spec.{field}[{name}].", volumes)
    _check_references(spec)


def _check_container(container: Mapping[str, Any], at: str, volumes: set[str]) -> None:
    for field in _LISTS_OF_CONTAINER:
        _mappings(container, field, at)
    for field in _MAPPINGS_OF_CONTAINER:
        _mapping(container, field, at)
    for field in ("command", "args"):
        words = container.get(field) or []
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise BadManifestError(f"{at}{field}: {words!r}: use a list of texts")
    for mount in container.get("volumeMounts") or []:
        if mount.get("name") not in volumes:
            raise BadManifestError(
                f"{at}volumeMounts: {mount.get('name')!r}: spec.volumes has no such volume"
            )
        if not isinstance(mount.get("mountPath"), str):
            raise BadManifestError(f"{at}volumeMounts[{mount['name']}].mountPath is missing")


def _check_references(spec: Mapping[str, Any]) -> None:
    """Refuse references to API objects: the API server refuses a mirror pod with them."""
    try:
        found = references({"spec": spec})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadManifestError(f"spec: not as a pod's: {error!r}") from None
    if found.config_maps or found.secrets or found.tokens:
        names = sorted(found.config_maps | found.secrets) or ["a token"]
        raise BadManifestError(
            f"spec: {', '.join(names)}: a static pod cannot refer to ConfigMaps, Secrets or "
            "tokens; use a hostPath"
        )


def _named(entry: Mapping[str, Any], at: str) -> str:
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadManifestError(f"{at}: {name!r}: each needs a name of lower case letters")
    return name


def _mapping(parent: Mapping[str, Any], field: str, at: str = "") -> Mapping[str, Any]:
    value = parent.get(field) or {}
    if not isinstance(value, dict):
        raise BadManifestError(f"{at}{field}: {value!r}: use fields, not a {type(value).__name__}")
    return value


def _mappings(parent: Mapping[str, Any], field: str, at: str) -> None:
    value = parent.get(field) or []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise BadManifestError(f"{at}{field}: use a list of objects")
