"""Converts old CustomResourceDefinitions (`apiextensions.k8s.io/v1beta1`) to v1. Pure.

A v1beta1 definition keeps unknown fields, so the converted one does too, at each level. Where v1
needs something that v1beta1 leaves open, such as the type of a field, the definition is not
converted: to add it would be a guess.
"""

import copy
from typing import Any

import msgspec

from quarterdeck.api.meta import Object

V1 = "apiextensions.k8s.io/v1"
V1BETA1 = "apiextensions.k8s.io/v1beta1"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
_NUMBER_OR_TEXT = ({"integer", "string"}, {"number", "string"})


class Unconvertible(Exception):  # noqa: N818 - reads as what it is
    """A definition that has no v1 form without a guess."""


class Converted(msgspec.Struct, frozen=True):
    """A definition in v1, and what was changed."""

    definition: Object
    changes: tuple[str, ...]


def convert_definition(old: Object) -> Converted:
    """The v1 form of a v1beta1 definition; `Unconvertible` if that would take a guess."""
    spec = copy.deepcopy(old.get("spec") or {})
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy") not in (None, "None"):
        raise Unconvertible("it has a conversion webhook")
    shared = {
        "schema": (spec.pop("validation", None) or {}).get("openAPIV3Schema"),
        "subresources": spec.pop("subresources", None),
        "columns": spec.pop("additionalPrinterColumns", None),
    }
    single = spec.pop("version", None)
    preserve = spec.pop("preserveUnknownFields", True)
    listed = spec.pop("versions", None) or [{"name": single, "served": True, "storage": True}]
    changes = ["apiVersion v1beta1 became v1"]
    if single and listed[0]["name"] != single:
        raise Unconvertible(f"spec.version is {single}, the first of spec.versions is not")
    spec["versions"] = [_version(one, shared, preserve, changes) for one in listed]
    meta = {key: value for key, value in old["metadata"].items() if key != "creationTimestamp"}
    result = {
        "apiVersion": V1,
        "kind": "CustomResourceDefinition",
        "metadata": meta,
        "spec": spec,
    }
    return Converted(result, tuple(dict.fromkeys(changes)))


def _version(version: Object, shared: Object, preserve: bool, changes: list[str]) -> Object:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or shared["schema"]
    result = {name: version[name] for name in ("name", "served", "storage")}
    if schema is None:
        changes.append("without a schema, any content stays allowed")
        result["schema"] = {"openAPIV3Schema": {"type": "object", PRESERVE: True}}
    else:
        if preserve:
            changes.append("unknown fields are kept, as before")
        result["schema"] = {
            "openAPIV3Schema": _schema(schema, preserve, "openAPIV3Schema", top=True)
        }
    if (subresources := version.get("subresources") or shared["subresources"]) is not None:
        result["subresources"] = subresources
    if columns := version.get("additionalPrinterColumns") or shared["columns"]:
        result["additionalPrinterColumns"] = [
            {("jsonPath" if name == "JSONPath" else name): value for name, value in one.items()}
            for one in columns
        ]
    return result


def _schema(schema: Any, preserve: bool, path: str, *, top: bool = False) -> Object:
    if not isinstance(schema, dict):
        raise Unconvertible(f"{path} is no schema")
    if "$ref" in schema:
        raise Unconvertible(f"{path} has a reference, which v1 does not allow")
    result = {name: value for name, value in schema.items() if name != "default"}
    if "type" not in schema:
        if top:
            # The top is an object in any case: the server stores nothing else.
            result["type"] = "object"
        elif _is_int_or_string(schema):
            result.pop("anyOf", None)
            result.pop("oneOf", None)
            result.pop("format", None)
            return {**result, INT_OR_STRING: True}
        else:
            raise Unconvertible(f"{path} has no type")
    if "properties" in schema:
        result["properties"] = {
            name: {"type": "object"}
            if top and name == "metadata"
            else _schema(below, preserve, f"{path}.{name}")
            for name, below in schema["properties"].items()
        }
    items = schema.get("items")
    if result["type"] == "array" and not isinstance(items, dict):
        raise Unconvertible(f"{path} is a list without a schema of its items")
    if isinstance(items, dict):
        result["items"] = _schema(items, preserve, f"{path}[]")
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        result["additionalProperties"] = _schema(additional, preserve, f"{path}.*")
    elif additional is False:
        raise Unconvertible(f"{path} forbids other properties, which v1 does not allow")
    if preserve and result["type"] == "object" and not isinstance(additional, dict):
        result.pop("additionalProperties", None)
        result[PRESERVE] = True
    return result


def _is_int_or_string(schema: Object) -> bool:
    if schema.get("format") == "int-or-string":
        return True
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word) or ()
        if {branch.get("type") for branch in branches} in _NUMBER_OR_TEXT:
            return True
    return False
