"""A kind for tests of what comes over the wire."""

from typing import Any

import msgspec

from quarterdeck.api.meta import Part, Resource, TypedObject


class GadgetSpec(Part):
    size: int


class Gadget(TypedObject):
    spec: GadgetSpec


GADGETS = Resource(
    group="example.com", version="v1", kind="Gadget", plural="gadgets", namespaced=True, type=Gadget
)


def managed(*managers: str) -> list[dict[str, Any]]:
    return [
        {"manager": manager, "operation": "Apply", "fieldsV1": {"f:data": {}}}
        for manager in managers
    ]


def gadget(name: str, size: Any = 1, version: str = "7") -> dict[str, Any]:
    meta = {"name": name, "namespace": "n", "uid": f"u-{name}", "resourceVersion": version}
    meta["managedFields"] = managed("us", "them")  # type: ignore[assignment]
    return {
        "apiVersion": GADGETS.api_version,
        "kind": GADGETS.kind,
        "metadata": meta,
        "spec": {"size": size},
    }


def gadget_list(meta: dict[str, Any], items: list[dict[str, Any]] | None) -> bytes:
    kind = {"apiVersion": GADGETS.api_version, "kind": "GadgetList"}
    return msgspec.json.encode({**kind, "metadata": meta, "items": items})


def line(kind: str, obj: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"
