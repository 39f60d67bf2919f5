"""The release payload of operators, from their declarations. Pure.

In a payload, the names of the files give their order, annotations select the clusters that get a
manifest, and the operator that applies payloads has a directory of releases. All else is as outside
a payload.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from quarterdeck.api.definition import definition
from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, Deployed, InPayload
from quarterdeck.delivery.manifests import (
    account_objects,
    add_empty_dir,
    add_host_path,
    add_optional_files,
    custom_resource,
    deployment,
    disruption_budgets,
    part_objects,
)
from quarterdeck.payload.annotations import CAPABILITY, CREATE_ONLY, INCLUDE
from quarterdeck.payload.files import IMAGE_REFERENCES
from quarterdeck.payload.model import PLACEHOLDER_VERSION

SHARED = ("Namespace", "CustomResourceDefinition")
"""The kinds of objects that two operators may both deliver."""


def payload(operators: Iterable[Declaration]) -> dict[str, list[Object]]:
    """The objects of every file of the payload, by the file's name."""
    delivered = [one for one in operators if one.is_in_payload]
    made: dict[str, list[Object]] = {}
    for declared in delivered:
        for name, objects in _files(declared):
            if not objects:
                continue
            made.setdefault(name, []).extend(_annotated(obj, declared) for obj in objects)
    made = _without_duplicates(dict(sorted(made.items())))
    made[IMAGE_REFERENCES] = [_images(delivered)]
    return made


def component_prefix(declared: Declaration) -> str:
    """The start of the names of the operator's own payload files."""
    return f"0000_{declared.run_level:02}_{declared.component or declared.name}_"


def _files(declared: Declaration) -> Iterator[tuple[str, list[Object]]]:
    own = component_prefix(declared)
    yield from _definitions(own, declared.kinds)
    yield f"{own}02_rbac.yaml", account_objects(declared)
    yield f"{own}03_deployment.yaml", [payload_deployment(declared)]
    yield f"{own}03_disruption-budget.yaml", disruption_budgets(declared)
    if declared.cluster_operator:
        yield f"{own}04_clusteroperator.yaml", [_cluster_operator(declared)]
    for part in declared.parts:
        prefix = f"0000_{part.run_level:02}_{part.name}_"
        yield from _definitions(prefix, part.kinds)
        if part.objects:
            objects = part_objects(part)
            yield (
                f"{prefix}02_objects.yaml",
                objects if part.kept else [*map(_created_once, objects)],
            )


def _definitions(prefix: str, kinds: Iterable[str]) -> Iterator[tuple[str, list[Object]]]:
    for reference in kinds:
        kind = custom_resource(reference)
        yield f"{prefix}01_{kind.plural}.crd.yaml", [_sorted(definition(kind))]


def _sorted(value: Any) -> Any:
    """The value with the fields of all objects sorted by name, as in `deploy/crds`."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _created_once(obj: Object) -> Object:
    """The manifest of an object that belongs to the administrator once it exists."""
    metadata = obj["metadata"]
    annotations = {CREATE_ONLY: "true", **(metadata.get("annotations") or {})}
    return obj | {"metadata": metadata | {"annotations": annotations}}


def _annotated(obj: Object, declared: Declaration) -> Object:
    """The manifest with the annotations that select its clusters."""
    metadata = obj["metadata"]
    annotations = dict(metadata.get("annotations") or {})
    if not any(name.startswith(INCLUDE) for name in annotations):
        annotations |= {f"{INCLUDE}{profile}": "true" for profile in declared.profiles}
    if declared.capability:
        annotations.setdefault(CAPABILITY, declared.capability)
    return obj | {"metadata": metadata | {"annotations": annotations}}


def payload_deployment(declared: Declaration) -> Object:
    """The Deployment with its additions for a payload."""
    assert isinstance(declared.delivery, Deployed)  # noqa: S101 - no others are in a payload
    extra = declared.delivery.in_payload or InPayload()
    made = copy.deepcopy(deployment(declared, declared.delivery))
    pod = made["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    container["image"] = extra.image or container["image"]
    container["args"] += extra.args
    for host_path in extra.host_paths:
        add_host_path(pod, host_path)
    for empty_dir in extra.empty_dirs:
        add_empty_dir(pod, empty_dir)
    for files in extra.optional_files:
        add_optional_files(pod, files)
    return made


def _cluster_operator(declared: Declaration) -> Object:
    """The ClusterOperator; an update waits until it reports the version of the release.

    The operator reports its related objects itself; before it runs, this manifest does.
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


def _without_duplicates(made: dict[str, list[Object]]) -> dict[str, list[Object]]:
    """The files without repeated objects: operators may share a namespace or a resource type."""
    seen: dict[tuple[str, str], Object] = {}
    kept: dict[str, list[Object]] = {}
    for name, objects in made.items():
        for obj in objects:
            identity = obj["kind"], obj["metadata"]["name"]
            if identity in seen:
                _select_clusters_of_both(seen[identity], obj)
                continue
            kept.setdefault(name, []).append(obj)
            if identity[0] in SHARED:
                seen[identity] = obj
    return kept


def _select_clusters_of_both(first: Object, again: Object) -> None:
    """Select the clusters of another operator's object too: both operators need it there."""
    ours, theirs = first["metadata"]["annotations"], again["metadata"]["annotations"]
    ours |= {name: value for name, value in theirs.items() if name.startswith(INCLUDE)}
    if ours.get(CAPABILITY) != theirs.get(CAPABILITY):
        ours.pop(CAPABILITY, None)


def _images(operators: Iterable[Declaration]) -> Object:
    """The images of the operators and of their operands, by the names in their manifests."""
    deliveries = [one.delivery for one in operators if isinstance(one.delivery, Deployed)]
    names = sorted({name for one in deliveries for name in (one.image, *one.other_images)})
    return {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "spec": {"tags": [{"name": name, "from": {"name": name}} for name in names]},
    }
