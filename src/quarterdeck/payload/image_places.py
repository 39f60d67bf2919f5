"""Where a manifest names images: containers, variables of containers, and `images.json`. Pure.

An image that is a plain word, as `quarterdeck`, may also be a label or a name, so it is replaced in
these places only. Any other reference is unmistakable, and is replaced in the text.
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from quarterdeck.api.meta import Object

Path: TypeAlias = tuple[str | int, ...]

IMAGE_MAP = "images.json"
"""The key of a ConfigMap in which operators look up the images of their operands."""

_POD_SPECS: dict[str, Path] = {
    "CronJob": ("spec", "jobTemplate", "spec", "template", "spec"),
    "DaemonSet": ("spec", "template", "spec"),
    "Deployment": ("spec", "template", "spec"),
    "Job": ("spec", "template", "spec"),
    "Pod": ("spec",),
    "ReplicaSet": ("spec", "template", "spec"),
    "StatefulSet": ("spec", "template", "spec"),
}
_PLAIN_WORD = re.compile(r"[\w-]+\Z", re.ASCII)


def is_plain_word(image: str) -> bool:
    """Whether an image could be any other text: it has no registry, path, tag or digest."""
    return _PLAIN_WORD.match(image) is not None


def containers(manifest: Object) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The containers of a manifest, with the path of each."""
    path = _POD_SPECS.get(manifest["kind"])
    spec: Any = manifest
    for part in path or ():
        spec = spec.get(part) if isinstance(spec, dict) else None
    if path is None or not isinstance(spec, dict):
        return
    for field in ("initContainers", "containers"):
        found = spec.get(field)
        for index, container in enumerate(found if isinstance(found, list) else ()):
            if isinstance(container, dict):
                yield (*path, field, index), container


def image_variables(container: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The variables of a container that name an image: number and value of each."""
    env = container.get("env")
    for index, variable in enumerate(env if isinstance(env, list) else ()):
        name = variable.get("name") if isinstance(variable, dict) else None
        if isinstance(name, str) and (name.endswith("_IMAGE") or name.startswith("RELATED_IMAGE_")):
            value = variable.get("value")
            if isinstance(value, str) and value:
                yield index, value


def image_map(manifest: Object) -> dict[str, str]:
    """The images in a ConfigMap's `images.json` by name; none if it has none, or a broken one."""
    data = manifest.get("data")
    if manifest["kind"] != "ConfigMap" or not isinstance(data, dict):
        return {}
    try:
        images = json.loads(data.get(IMAGE_MAP, "{}"))
    except (TypeError, ValueError, RecursionError):
        return {}
    found = images.items() if isinstance(images, dict) else ()
    return {name: value for name, value in found if isinstance(value, str) and value}


def replace_plain_images(manifest: Object, images: Mapping[str, str]) -> Object:
    """The manifest with images that are plain words replaced; the same object if it has none."""
    plain = {image: real for image, real in images.items() if is_plain_word(image)}
    if not plain or not _names_any(manifest, plain):
        return manifest
    made = copy.deepcopy(manifest)
    for _, container in containers(made):
        image = container.get("image")
        if isinstance(image, str) and image in plain:
            container["image"] = plain[image]
        for index, value in image_variables(container):
            container["env"][index]["value"] = plain.get(value, value)
    listed = image_map(made)
    if plain.keys() & set(listed.values()):
        every = json.loads(made["data"][IMAGE_MAP])
        every |= {name: plain.get(value, value) for name, value in listed.items()}
        made["data"][IMAGE_MAP] = json.dumps(every, indent=2) + "\n"
    return made


def _names_any(manifest: Object, images: Mapping[str, str]) -> bool:
    for _, container in containers(manifest):
        # Of any type, in an invalid manifest.
        image = container.get("image")
        values = [image] if isinstance(image, str) else []
        values += [value for _, value in image_variables(container)]
        if any(value in images for value in values):
            return True
    return any(value in images for value in image_map(manifest).values())
