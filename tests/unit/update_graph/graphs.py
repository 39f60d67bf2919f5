"""Update graphs as an update service answers them."""

from typing import Any

import msgspec

ALWAYS = {"type": "Always"}
PROMQL = {"type": "PromQL", "promql": {"promql": "max(up)"}}


def node(version: str, **metadata: str) -> dict[str, Any]:
    digest = f"sha256:{version.encode().hex().zfill(64)[-64:]}"
    return {
        "version": version,
        "payload": f"registry.example.test/quarterdeck@{digest}",
        "metadata": metadata,
    }


def risk(name: str, *rules: dict[str, Any], message: str = "It leaks.") -> dict[str, Any]:
    return {
        "name": name,
        "message": message,
        "url": f"https://example.test/{len(name)}",
        "matchingRules": list(rules),
    }


def conditional(start: str, to: str, *risks: dict[str, Any]) -> dict[str, Any]:
    return {"edges": [{"from": start, "to": to}], "risks": list(risks)}


def graph(
    versions: tuple[str, ...], *edges: tuple[int, int], conditional: list[Any] | None = None
) -> bytes:
    return msgspec.json.encode(
        {
            "nodes": [node(version) for version in versions],
            "edges": edges,
            "conditionalEdges": conditional or [],
        }
    )
