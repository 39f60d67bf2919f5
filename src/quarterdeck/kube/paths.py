"""The paths and queries of requests, safe against names that change the path."""

from typing import Any
from urllib.parse import quote

from quarterdeck.api.meta import Resource


def collection(resource: Resource[Any], namespace: str = "") -> str:
    """The path of all objects of a resource, in one namespace or in all."""
    return resource.path(_escaped(namespace))


def object_path(
    resource: Resource[Any], name: str, namespace: str = "", subresource: str = ""
) -> str:
    """The path of one object; never that of all objects, which a DELETE would delete."""
    if not name:
        raise ValueError(f"the name of a {resource.kind} is empty")
    if resource.namespaced and not namespace:
        raise ValueError(f"{resource.kind} {name} is in a namespace, and none is given")
    return resource.path(_escaped(namespace), _escaped(name), subresource)


def selectors(label_selector: str, field_selector: str, name: str = "") -> dict[str, str]:
    """The query parameters of these selectors."""
    fields = [field_selector] if field_selector else []
    if name:
        fields.append(f"metadata.name={name}")
    query = {"labelSelector": label_selector, "fieldSelector": ",".join(fields)}
    return {parameter: value for parameter, value in query.items() if value}


def _escaped(segment: str) -> str:
    """One path segment, escaped so that a name cannot change the path."""
    if segment in (".", ".."):
        raise ValueError(f"{segment!r} is not a name")
    return quote(segment, safe=":@")
