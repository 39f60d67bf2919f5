"""Finds the faults of a payload that can be found without a cluster, in file order.

The rules are in the other `lint_` modules.
"""

from collections.abc import Iterable, Iterator

from quarterdeck.payload.findings import (
    Finding,
    Severity,
    unreadable,
)
from quarterdeck.payload.gates import gate_states
from quarterdeck.payload.lint_annotations import annotation_findings
from quarterdeck.payload.lint_images import image_findings
from quarterdeck.payload.lint_names import name_findings
from quarterdeck.payload.lint_objects import (
    definitions,
    duplicates,
    missing_namespaces,
    never_included,
)
from quarterdeck.payload.lint_rights import own_rights
from quarterdeck.payload.load import Reading
from quarterdeck.payload.model import Payload
from quarterdeck.payload.variants import ClusterVariants


def lint(reading: Reading, *, gates: Iterable[str] = ()) -> tuple[Finding, ...]:
    """All findings; `gates` are known beyond those of the release and the payload."""
    payload = reading.payload
    variants = ClusterVariants(payload)
    own = list(_manifest_findings(payload, _known_gates(payload, variants) | set(gates)))
    findings = [
        *(unreadable(problem) for problem in reading.problems),
        *_empty(reading),
        *_passed_over(payload),
        *own,
        *duplicates(payload, variants),
        *definitions(payload, variants),
        *missing_namespaces(payload),
        *own_rights(payload, variants),
        *never_included(payload, variants, {(f.file, f.document) for f in own}),
    ]
    # The rules' own order decides between findings of one document.
    return tuple(sorted(findings, key=lambda finding: (finding.file, finding.document or 0)))


def _manifest_findings(payload: Payload, gates: set[str]) -> Iterator[Finding]:
    for manifest in payload.manifests:
        yield from name_findings(manifest)
        yield from annotation_findings(manifest, gates)
        yield from image_findings(payload, manifest)


def _known_gates(payload: Payload, variants: ClusterVariants) -> set[str]:
    return {
        gate
        for variant in variants.all
        for gate in gate_states(payload, variant.profile, variant.feature_set)
    }


def _empty(reading: Reading) -> Iterator[Finding]:
    if not reading.payload.manifests and not reading.problems:
        yield Finding(
            severity=Severity.ERROR,
            code="no-manifests",
            file=".",
            value="",
            message="there is no manifest in the directory",
            remedy="name a directory with .yaml, .yml or .json files",
        )


def _passed_over(payload: Payload) -> Iterator[Finding]:
    for file in payload.too_deep:
        yield Finding(
            severity=Severity.WARNING,
            code="passed-over",
            file=file,
            value="",
            message="the file is too deep in the directory to be read",
            remedy="put it into the payload's directory, or into one directly below",
        )
