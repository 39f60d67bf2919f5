"""Which parts of a kind's schema are Kubernetes' own types."""

from typing import Any

from quarterdeck.api.kubernetes_types import ROOTS, kubernetes_schema

_KNOWN = [kubernetes_schema(name) for name in ROOTS]


def is_kubernetes_type(schema: dict[str, Any]) -> bool:
    """Whether this is the schema of one of Kubernetes' own types, apart from its description."""
    return {word: value for word, value in schema.items() if word != "description"} in _KNOWN
