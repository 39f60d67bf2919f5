"""The objects that everything here works on: a custom resource of about 2 kB, and its ConfigMap.

A Widget's `spec.round` is the one field that changes. This module knows the objects in the form in
which they are written, and in the form in which an API server sends them; `go/widget.go` and
`subjects/` have the same kind in the words of each client.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

GROUP, VERSION, KIND, PLURAL = "bench.quarterdeck.dev", "v1", "Widget", "widgets"
API_VERSION = f"{GROUP}/{VERSION}"
NAMESPACE = "bench"
FIELD_MANAGER = "quarterdeck-bench"
"""Who writes, the bare client too: so that an operator finds what that one wrote in order."""
COLLECTION = f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/{PLURAL}"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

FIRST_VERSION = 1_000_000
"""The resource version of the recorded list; events count on from it."""

Object = dict[str, Any]


def name_of(index: int) -> str:
    return f"widget-{index:05d}"


def spec(index: int, round_: int) -> Object:
    """What a user would write; alike enough for all to be the same size."""
    return {
        "text": f"The quick brown fox number {index:05d} jumps over the lazy dog.",
        "round": round_,
        "settings": {f"setting-{n}": f"value {n} of widget {index:05d}" for n in range(12)},
        "endpoints": [
            {
                "name": f"endpoint-{n}",
                "host": f"host-{n}.widget-{index:05d}.example.com",
                "port": 8080 + n,
                "tags": ["blue", "canary", f"zone-{n}"],
            }
            for n in range(6)
        ],
    }


def widget(index: int, round_: int = 0) -> Object:
    """A Widget to be created."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name_of(index), "namespace": NAMESPACE},
        "spec": spec(index, round_),
    }


def config_map(index: int, round_: int, owner_uid: str) -> Object:
    """The ConfigMap that belongs to a Widget."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name_of(index),
            "namespace": NAMESPACE,
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": KIND,
                    "name": name_of(index),
                    "uid": owner_uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "data": {"text": spec(index, round_)["text"], "round": str(round_)},
    }


def status(index: int, generation: int) -> Object:
    """What an operator says about a Widget that it is done with."""
    return {"observedGeneration": generation, "configMap": name_of(index), "phase": "Ready"}


def served(index: int, round_: int, version: int) -> Object:
    """The Widget as an API server sends it: with the server's metadata, keys in order."""
    written = spec(index, round_)
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": round_ + 1,
            "managedFields": [
                {
                    "apiVersion": API_VERSION,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {
                        "f:spec": {
                            ".": {},
                            "f:endpoints": {},
                            "f:round": {},
                            "f:settings": {
                                ".": {},
                                **{f"f:{key}": {} for key in sorted(written["settings"])},
                            },
                            "f:text": {},
                        }
                    },
                    "manager": "bench",
                    "operation": "Update",
                    "time": "2026-01-01T00:00:00Z",
                }
            ],
            "name": name_of(index),
            "namespace": NAMESPACE,
            "resourceVersion": str(version),
            "uid": f"00000000-0000-4000-8000-{index:012d}",
        },
        "spec": {
            "endpoints": [dict(sorted(one.items())) for one in written["endpoints"]],
            "round": round_,
            "settings": dict(sorted(written["settings"].items())),
            "text": written["text"],
        },
    }


def recorded_items(objects: int) -> Iterator[bytes]:
    """The listed objects, one line each."""
    for index in range(objects):
        yield msgspec.json.encode(served(index, 0, FIRST_VERSION - objects + index)) + b"\n"


def recorded_events(objects: int, events: int) -> Iterator[bytes]:
    """The watch events, one line each: every object in turn, round after round.

    In turn, so that a queue that drops repeated keys has as little to drop as possible.
    """
    for number in range(events):
        round_, index = divmod(number, objects)
        changed = served(index, round_ + 1, FIRST_VERSION + 1 + number)
        yield msgspec.json.encode({"type": "MODIFIED", "object": changed}) + b"\n"


def definition() -> Object:
    """The CRD."""
    text, number = {"type": "string"}, {"type": "integer", "format": "int64"}
    endpoint = {
        "type": "object",
        "required": ["name", "host", "port"],
        "properties": {
            "name": text,
            "host": text,
            "port": number,
            "tags": {"type": "array", "items": text},
        },
    }
    spec_schema = {
        "type": "object",
        "required": ["text", "round"],
        "properties": {
            "text": text,
            "round": number,
            "settings": {"type": "object", "additionalProperties": text},
            "endpoints": {"type": "array", "items": endpoint},
        },
    }
    status_schema = {
        "type": "object",
        "properties": {"observedGeneration": number, "configMap": text, "phase": text},
        # kopf keeps what it remembers about an object here, whatever the operator's author wants.
        "x-kubernetes-preserve-unknown-fields": True,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": KIND,
                "plural": PLURAL,
                "singular": KIND.lower(),
                "listKind": "WidgetList",
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "required": ["spec"],
                            "properties": {"spec": spec_schema, "status": status_schema},
                        }
                    },
                }
            ],
        },
    }
