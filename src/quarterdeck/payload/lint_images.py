"""Lint: images that `image-references` does not list.

Only listed images become part of a release; any other image is not mirrored with it, and is pulled
from the registry in its name.
"""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from quarterdeck.payload.findings import Finding, error, warning
from quarterdeck.payload.load import UNKNOWN_IMAGE
from quarterdeck.payload.model import Manifest, Payload

Path: TypeAlias = tuple[str | int, ...]

_POD_SPECS: dict[str, Path] = {
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "DaemonSet": ("spec", "template", "spec"),
    "Deployment": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
    "Pod": ("spec",),
    "ReplicaSet": ("spec", "template", "spec"),
    "StatefulSet": ("spec", "template", "spec"),
}
_IMAGE_MAP = "images.json"
"""The key of a ConfigMap in which operators look up the images of their operands."""
_REMEDY = "list it in image-references, or use an image that is listed there"


def image_findings(payload: Payload, manifest: Manifest) -> Iterator[Finding]:
    """The images of a manifest that are in neither its component's list nor the release's."""
    listed = payload.references_for(manifest) or {}
    above = payload.references.get(manifest.directory.rpartition("/")[0], {})
    release = {payload.release.image, UNKNOWN_IMAGE, *payload.release.images.values()}

    def unlisted(image: str) -> bool:
        return image not in listed and image not in above and image not in release

    for path, container in _containers(manifest):
        image = container.get("image")
        if isinstance(image, str) and unlisted(image):
            message = "a container runs an image that image-references does not list"
            yield error("image-not-listed", manifest, (*path, "image"), image, message, _REMEDY)
        for variable, value in _image_variables(container):
            if unlisted(value):
                message = "a variable names an image that image-references does not list"
                where = (*path, "env", variable, "value")
                yield warning("image-not-listed", manifest, where, value, message, _REMEDY)
    for name, value in _image_map(manifest):
        if unlisted(value):
            message = f"{name} is an image that image-references does not list"
            where = ("data", _IMAGE_MAP)
            yield warning("image-not-listed", manifest, where, value, message, _REMEDY)


def _containers(manifest: Manifest) -> Iterator[tuple[Path, dict[str, Any]]]:
    path = _POD_SPECS.get(manifest.object["kind"])
    spec: Any = manifest.object
    for part in path or ():
        spec = spec.get(part) if isinstance(spec, dict) else None
    if path is None or not isinstance(spec, dict):
        return
    for field in ("initContainers", "containers"):
        containers = spec.get(field)
        for index, container in enumerate(containers if isinstance(containers, list) else ()):
            if isinstance(container, dict):
                yield (*path, field, index), container


def _image_variables(container: dict[str, Any]) -> Iterator[tuple[int, str]]:
    env = container.get("env")
    for index, variable in enumerate(env if isinstance(env, list) else ()):
        name = variable.get("name") if isinstance(variable, dict) else None
        if isinstance(name, str) and (name.endswith("_IMAGE") or name.startswith("RELATED_IMAGE_")):
            value = variable.get("value")
            if isinstance(value, str) and value:
                yield index, value


def _image_map(manifest: Manifest) -> Iterator[tuple[str, str]]:
    data = manifest.object.get("data")
    if manifest.object["kind"] != "ConfigMap" or not isinstance(data, dict):
        return
    try:
        images = json.loads(data.get(_IMAGE_MAP, "{}"))
    except (TypeError, ValueError, RecursionError):
        return
    for name, value in images.items() if isinstance(images, dict) else ():
        if isinstance(value, str) and value:
            yield name, value
