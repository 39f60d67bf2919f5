"""Makes the CustomResourceDefinition of a kind from its declaration.

This module makes names, scope, columns, subresource and annotations; `structural` makes the schema
of the fields.
"""

from typing import Any

from quarterdeck.api.custom_resource import Column, CustomResource
from quarterdeck.api.meta import Object
from quarterdeck.api.schema import validation
from quarterdeck.api.structural import Schema, schema_of

ENVELOPE: dict[str, Schema] = {
    "apiVersion": {
        "description": "The API group and version of this object.",
        "type": "string",
    },
    "kind": {"description": "The kind of this object, in CamelCase.", "type": "string"},
    # The API server knows the schema of metadata and refuses another one in a CRD.
    "metadata": {"type": "object"},
}


def definition(resource: CustomResource[Any]) -> Object:
    """The CRD of a kind, ready to be applied."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": _metadata(resource),
        "spec": {
            "group": resource.group,
            "names": _names(resource),
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_version(resource)],
        },
    }


def _metadata(resource: CustomResource[Any]) -> Object:
    annotations = {f"include.release.openshift.io/{name}": "true" for name in resource.profiles}
    if resource.feature_gate:
        annotations["release.openshift.io/feature-gate"] = resource.feature_gate
    named = {"name": resource.crd_name}
    return {"annotations": annotations, **named} if annotations else named


def _names(resource: CustomResource[Any]) -> Object:
    names: Object = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    if resource.categories:
        names["categories"] = list(resource.categories)
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    return names


def _version(resource: CustomResource[Any]) -> Object:
    version: Object = {
        "name": resource.version,
        "schema": {"openAPIV3Schema": root_schema(resource)},
        "served": True,
        "storage": True,
        "subresources": subresources(resource),
    }
    if resource.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in resource.columns]
    return version


def subresources(resource: CustomResource[Any]) -> Object:
    """The subresources of a kind: its status, and its scale if it has one."""
    if resource.scale is None:
        return {"status": {}}
    scale = {
        "specReplicasPath": resource.scale.spec_replicas,
        "statusReplicasPath": resource.scale.status_replicas,
        "labelSelectorPath": resource.scale.selector,
    }
    return {"scale": scale, "status": {}}


def root_schema(resource: CustomResource[Any]) -> Schema:
    """The schema of a whole object of the kind."""
    schema = schema_of(resource.type, resource.kind)
    schema["properties"] |= ENVELOPE
    if resource.rules:
        schema["x-kubernetes-validations"] = [validation(rule) for rule in resource.rules]
    return schema


def _column(column: Column) -> Object:
    shown: Object = {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.json_path,
        "description": column.description,
    }
    return {**shown, "priority": column.priority} if column.priority else shown
