"""The release payload of some operators, from what they declare. Pure.

A payload's manifests need names that say their order, annotations that say for which clusters
they count, and, for the operator that applies them, the place where it finds releases. All else
is as it is delivered elsewhere.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from quarterdeck.api.definition import definition
from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, Deployed
from quarterdeck.delivery.manifests import (
    account_objects,
    add_host_path,
    custom_resource,
    deployment,
    part_objects,
)
from quarterdeck.payload.annotations import CAPABILITY, INCLUDE
from quarterdeck.payload.model import PLACEHOLDER_VERSION

IMAGES = "image-references"
SHARED = ("Namespace", "CustomResourceDefinition")
"""What two operators may both bring."""


def payload(operators: Iterable[Declaration]) -> dict[str, list[Object]]:
    """The objects of every file of the payload, by the file's name."""
    delivered = [one for one in operators if isinstance(one.delivery, Deployed)]
    made: dict[str, list[Object]] = {}
    for declared in delivered:
        for name, objects in _files(declared):
            made.setdefault(name, []).extend(_counted(obj, declared) for obj in objects)
    made = _once(dict(sorted(made.items())))
    made[IMAGES] = [_images(delivered)]
    return made


def component_prefix(declared: Declaration) -> str:
    """How the names of the operator's own files in a payload begin."""
    return f"0000_{declared.run_level:02}_{declared.component or declared.name}_"


def _files(declared: Declaration) -> Iterator[tuple[str, list[Object]]]:
    own = component_prefix(declared)
    yield from _definitions(own, declared.kinds)
    yield f"{own}02_rbac.yaml", account_objects(declared)
    yield f"{own}03_deployment.yaml", [_deployment(declared)]
    if declared.cluster_operator:
        yield f"{own}04_clusteroperator.yaml", [_report(declared)]
    for part in declared.parts:
        prefix = f"0000_{part.run_level:02}_{part.name}_"
        yield from _definitions(prefix, part.kinds)
        if part.objects:
            yield f"{prefix}02_objects.yaml", part_objects(part)


def _definitions(prefix: str, kinds: Iterable[str]) -> Iterator[tuple[str, list[Object]]]:
    for reference in kinds:
        kind = custom_resource(reference)
        yield f"{prefix}01_{kind.plural}.crd.yaml", [_sorted(definition(kind))]


def _sorted(value: Any) -> Any:
    """The same with the fields of all objects in the order of their names, as in `deploy/crds`."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _counted(obj: Object, declared: Declaration) -> Object:
    """The manifest with the annotations by which it counts beside its own."""
    metadata = obj["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    if not any(name.startswith(INCLUDE) for name in annotations):
        annotations |= {f"{INCLUDE}{profile}": "true" for profile in declared.profiles}
    if declared.capability:
        annotations.setdefault(CAPABILITY, declared.capability)
    return obj | {"metadata": metadata | {"annotations": annotations}}


def _deployment(declared: Declaration) -> Object:
    """The Deployment with what it has in a payload alone."""
    assert isinstance(declared.delivery, Deployed)  # noqa: S101 - no others are in a payload
    extra = declared.delivery.in_payload
    made = copy.deepcopy(deployment(declared, declared.delivery))
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container["image"] = extra.image or container["image"]
    container["args"] += extra.args
    for host_path in extra.host_paths:
        add_host_path(pod, host_path)
    return made


def _report(declared: Declaration) -> Object:
    """The ClusterOperator whose report of the release's version is waited for.

    What belongs to the operator is told by the operator itself; before it runs, by this.
    """
    home = {"group": "", "resource": "namespaces", "name": declared.namespace}
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterOperator",
        "metadata": {"name": declared.cluster_operator},
        "spec": {},
        "status": {
            "versions": [{"name": "operator", "version": PLACEHOLDER_VERSION}],
            "relatedObjects": [home],
        },
    }


def _once(made: dict[str, list[Object]]) -> dict[str, list[Object]]:
    """The files without what comes before: operators may share a namespace, or a resource type."""
    seen: set[tuple[str, str]] = set()
    kept: dict[str, list[Object]] = {}
    for name, objects in made.items():
        for obj in objects:
            identity = obj["kind"], obj["metadata"]["name"]
            if identity[0] not in SHARED or identity not in seen:
                kept.setdefault(name, []).append(obj)
            seen.add(identity)
    return kept


def _images(operators: Iterable[Declaration]) -> Object:
    """The images that the operators are in, as their manifests call them."""
    names = sorted({one.delivery.image for one in operators if one.delivery is not None})
    return {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "spec": {"tags": [{"name": name, "from": {"name": name}} for name in names]},
    }
