"""Payload, findings, explanations and graphs as plain data, for JSON and YAML output."""

from collections.abc import Sequence
from typing import Any

from quarterdeck.feature_gates import DEFAULT
from quarterdeck.payload.explain import ManifestExplanation
from quarterdeck.payload.filters import FilterResult
from quarterdeck.payload.findings import Finding, Severity
from quarterdeck.payload.graph import Graph
from quarterdeck.payload.model import Manifest, Payload
from quarterdeck.payload.observed import ObservedCluster


def lint_view(payload: Payload, findings: Sequence[Finding]) -> dict[str, Any]:
    """The findings of lint, and the number of manifests."""
    return {
        "manifests": len(payload.manifests),
        "errors": sum(finding.severity is Severity.ERROR for finding in findings),
        "warnings": sum(finding.severity is Severity.WARNING for finding in findings),
        "findings": [_finding_view(finding) for finding in findings],
    }


def why_view(
    explanations: Sequence[ManifestExplanation], observed: ObservedCluster
) -> dict[str, Any]:
    """Which manifests are included, and the result of each filter."""
    return observed_view(observed) | {
        "manifests": [
            manifest_view(explanation.manifest)
            | {
                "included": explanation.excluded_by is None,
                "excludedBy": explanation.excluded_by and explanation.excluded_by.filter,
                "filters": [_filter_view(result) for result in explanation.filter_results],
            }
            for explanation in explanations
        ]
    }


def graph_view(graph: Graph, observed: ObservedCluster) -> dict[str, Any]:
    """The nodes, with the manifests of each and the nodes that it waits for."""
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
    """The facts about the cluster that the filters used."""
    return {
        "profile": observed.profile,
        "featureSet": observed.feature_set or DEFAULT,
        "enabledGates": sorted(observed.enabled_gates),
    }


def manifest_view(manifest: Manifest) -> dict[str, Any]:
    """The place of a manifest, and its object."""
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


def _filter_view(result: FilterResult) -> dict[str, Any]:
    return {
        "number": result.number,
        "filter": result.filter,
        "excludes": result.reason is not None,
        "reason": result.reason,
    }
