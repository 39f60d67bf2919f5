"""Payload, findings, explanations and graphs as plain data, for JSON and YAML output."""

from collections.abc import Sequence
from typing import Any

from quarterdeck.feature_gates import DEFAULT
from quarterdeck.payload.explain import Explanation
from quarterdeck.payload.filters import Verdict
from quarterdeck.payload.findings import Finding, Severity
from quarterdeck.payload.graph import Graph
from quarterdeck.payload.model import Manifest, Payload
from quarterdeck.payload.observed import ObservedCluster


def lint_view(payload: Payload, findings: Sequence[Finding]) -> dict[str, Any]:
    """What lint found, and in how much."""
    return {
        "manifests": len(payload.manifests),
        "errors": sum(finding.severity is Severity.ERROR for finding in findings),
        "warnings": sum(finding.severity is Severity.WARNING for finding in findings),
        "findings": [_finding_view(finding) for finding in findings],
    }


def why_view(explanations: Sequence[Explanation], observed: ObservedCluster) -> dict[str, Any]:
    """Which manifests count, and what each filter says of them."""
    return observed_view(observed) | {
        "manifests": [
            manifest_view(explanation.manifest)
            | {
                "included": explanation.excluded_by is None,
                "excludedBy": explanation.excluded_by and explanation.excluded_by.filter,
                "filters": [_verdict_view(verdict) for verdict in explanation.verdicts],
            }
            for explanation in explanations
        ]
    }


def graph_view(graph: Graph, observed: ObservedCluster) -> dict[str, Any]:
    """The nodes, what each applies and what it waits for."""
    return (
        {"mode": graph.mode.value}
        | observed_view(observed)
        | {
            "nodes": [
                {
                    "number": node.number,
                    "runLevel": node.run_level,
                    "component": node.component,
                    "after": list(node.after),
                    "manifests": [manifest_view(manifest) for manifest in node.manifests],
                }
                for node in graph.nodes
            ],
        }
    )


def observed_view(observed: ObservedCluster) -> dict[str, Any]:
    """What the filters were told."""
    return {
        "profile": observed.profile,
        "featureSet": observed.feature_set or DEFAULT,
        "enabledGates": sorted(observed.enabled_gates),
    }


def manifest_view(manifest: Manifest) -> dict[str, Any]:
    """Where a manifest is, and which object it is about."""
    return {
        "file": manifest.file,
        "document": manifest.document,
        "line": manifest.line,
        "object": str(manifest.identity),
    }


def _finding_view(finding: Finding) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "file": finding.file,
        "document": finding.document,
        "line": finding.line,
        "field": finding.field,
        "value": finding.value,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def _verdict_view(verdict: Verdict) -> dict[str, Any]:
    return {
        "number": verdict.number,
        "filter": verdict.filter,
        "excludes": verdict.reason is not None,
        "reason": verdict.reason,
    }
