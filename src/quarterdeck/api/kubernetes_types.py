"""The structural schemas of Kubernetes' own types, for fields of our kinds that have them.

`kubernetes_types.json` has them as the API server's OpenAPI does, but without descriptions and
defaults: `scripts/kubernetes_types.py` writes it. All lists are atomic, because a list with keys
would refuse the duplicates that an operator merges.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

Schema = dict[str, Any]

TYPES = Path(__file__).with_name("kubernetes_types.json")
ROOTS = (
    "Affinity",
    "DeploymentSpec",
    "EnvFromSource",
    "EnvVar",
    "LabelSelector",
    "PolicyRule",
    "ResourceRequirements",
    "Toleration",
    "Volume",
    "VolumeMount",
)
"""The types that fields of our kinds have; the types below them are included."""

_REF = "$ref"
_KEPT = (
    "type",
    "format",
    "required",
    "x-kubernetes-map-type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
)
# Types whose OpenAPI is not structural, and how a CRD says the same.
_SPECIAL: dict[str, Schema] = {
    "Quantity": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
        r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    },
    "IntOrString": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
    # Bundles have `creationTimestamp: null` in templates, and no other managed metadata.
    "ObjectMeta": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "namespace": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
            "creationTimestamp": {"type": "string", "format": "date-time", "nullable": True},
        },
    },
}


def kubernetes_schema(name: str) -> Schema:
    """The structural schema of a type, such as `EnvVar`."""
    return _inlined(_types()[name])


@cache
def _types() -> Mapping[str, Schema]:
    types: dict[str, Schema] = json.loads(TYPES.read_bytes())
    return types


def _inlined(schema: Schema) -> Schema:
    """The schema with the types that it refers to in their places."""
    if _REF in schema:
        return _inlined(_types()[schema[_REF]])
    result = dict(schema)
    if "properties" in schema:
        result["properties"] = {
            name: _inlined(below) for name, below in schema["properties"].items()
        }
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            result[inner] = _inlined(schema[inner])
    return result


def collected(documents: Iterable[Schema], roots: Iterable[str]) -> dict[str, Schema]:
    """These types and all below them, from OpenAPI documents, as `kubernetes_types.json` has them.

    The name of a type is the last part of its full name.
    """
    known: dict[str, Schema] = {}
    for document in documents:
        for full, schema in document["components"]["schemas"].items():
            known.setdefault(full.rpartition(".")[2], schema)
    found: dict[str, Schema] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _SPECIAL.get(name) or _structural(known[name])
            waiting += _referred(found[name])
    return found


def _structural(schema: Schema) -> Schema:
    if name := _reference(schema):
        return {_REF: name}
    result = {word: schema[word] for word in _KEPT if word in schema}
    if "properties" in schema:
        result["properties"] = {
            name: _structural(below) for name, below in schema["properties"].items()
        }
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            result[inner] = _structural(schema[inner])
    if "items" in schema:
        result["x-kubernetes-list-type"] = "atomic"
    return result


def _reference(schema: Schema) -> str:
    """The type that a schema refers to, directly or as the only entry of `allOf`."""
    references = [one.get(_REF, "") for one in (schema, *schema.get("allOf", ()))]
    return next((one.rpartition(".")[2] for one in references if one), "")


def _referred(schema: Schema) -> list[str]:
    if _REF in schema:
        return [schema[_REF]]
    inner = [schema[word] for word in ("items", "additionalProperties") if word in schema]
    below = [*schema.get("properties", {}).values(), *inner]
    return [name for one in below for name in _referred(one)]
