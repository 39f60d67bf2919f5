"""Lint: annotations with unknown values, contradictions or no effect."""

import difflib
from collections.abc import Collection, Iterator
from typing import Any

from quarterdeck.feature_gates import FEATURE_SETS
from quarterdeck.payload import annotations as known
from quarterdeck.payload.filters import has_major_versions
from quarterdeck.payload.findings import Finding, error, warning
from quarterdeck.payload.model import Manifest
from quarterdeck.payload.observed import CAPABILITIES, PROFILES


def annotation_findings(manifest: Manifest, gates: Collection[str]) -> Iterator[Finding]:
    """The faults of a manifest's annotations; `gates` are the known gates."""
    for name, value in manifest.annotations.items():
        if not isinstance(value, str):
            yield error(
                "annotation-not-text",
                manifest,
                _path(name),
                value,
                "an annotation must be a text; the API server refuses the object",
                f'quote it: "{str(value).lower() if isinstance(value, bool) else value}"',
            )
        elif name.startswith((known.INCLUDE, known.EXCLUDE)):
            yield from _include_or_exclude(manifest, name, value)
        elif name == known.FEATURE_SET:
            yield from _feature_sets(manifest, value)
        elif name == known.FEATURE_GATE:
            yield from _gates(manifest, value, gates)
        elif name == known.MAJOR_VERSION:
            yield from _major_version(manifest, value)
        elif name == known.CAPABILITY:
            yield from _capabilities(manifest, value)
        elif name in (known.CREATE_ONLY, known.DELETE) and value != "true":
            yield _bad(manifest, name, value, "the only value is true", 'write "true" or remove it')
    yield from _contradictions(manifest)


def _include_or_exclude(manifest: Manifest, name: str, value: str) -> Iterator[Finding]:
    if value not in ("true", "false", known.CONFIG_OPERATOR_ONLY):
        yield _bad(manifest, name, value, "only exactly true has an effect", 'write "true"')
    profile = name.removeprefix(known.INCLUDE)
    if name.startswith(known.INCLUDE) and profile not in PROFILES:
        yield warning(
            "unknown-profile",
            manifest,
            _path(name),
            profile,
            "no cluster runs this profile",
            _one_of(profile, PROFILES),
        )


def _feature_sets(manifest: Manifest, value: str) -> Iterator[Finding]:
    for name in known.feature_sets(value):
        if name not in FEATURE_SETS:
            yield error(
                "unknown-feature-set",
                manifest,
                _path(known.FEATURE_SET),
                name,
                "an unknown feature set excludes the manifest everywhere",
                _one_of(name, FEATURE_SETS),
            )


def _gates(manifest: Manifest, value: str, gates: Collection[str]) -> Iterator[Finding]:
    listed = known.gates(value)
    if not listed:
        yield _bad(manifest, known.FEATURE_GATE, value, "it names no gate", "name one or remove it")
    for gate, _ in listed:
        if gate not in gates:
            yield warning(
                "unknown-gate",
                manifest,
                _path(known.FEATURE_GATE),
                gate,
                "neither the release nor a FeatureGate of the payload has this gate: it is off",
                "correct the name, add it to the payload's FeatureGates, or pass it as --gate",
            )
    wanted = dict(listed)
    if any(wanted[gate] != on for gate, on in listed):
        yield _bad(
            manifest,
            known.FEATURE_GATE,
            value,
            "a gate cannot be on and off",
            "keep one of the two",
        )


def _major_version(manifest: Manifest, value: str) -> Iterator[Finding]:
    name = known.MAJOR_VERSION
    if not has_major_versions(manifest):
        kind = manifest.object["kind"]
        yield warning(
            "bad-annotation",
            manifest,
            _path(name),
            value,
            f"it has no effect on a {kind}, only on CRDs and FeatureGates",
            "remove it",
        )
    if not all(entry.removeprefix("-").isdecimal() for entry in known.names(value)):
        yield _bad(manifest, name, value, "not a list of numbers", "write for example 4,5 or -3")


def _capabilities(manifest: Manifest, value: str) -> Iterator[Finding]:
    for name in known.names(value, "+"):
        if name not in CAPABILITIES:
            yield error(
                "unknown-capability",
                manifest,
                _path(known.CAPABILITY),
                name,
                "an unknown capability excludes the manifest everywhere",
                _one_of(name, CAPABILITIES),
            )


def _contradictions(manifest: Manifest) -> Iterator[Finding]:
    annotations = manifest.annotations
    if known.FEATURE_SET in annotations and known.FEATURE_GATE in annotations:
        yield error(
            "set-and-gate",
            manifest,
            _path(known.FEATURE_GATE),
            annotations[known.FEATURE_GATE],
            f"together with {known.FEATURE_SET} it excludes the manifest everywhere",
            "keep one of the two",
        )
    if known.CREATE_ONLY in annotations and known.DELETE in annotations:
        yield error(
            "create-and-delete",
            manifest,
            _path(known.DELETE),
            annotations[known.DELETE],
            f"together with {known.CREATE_ONLY} it says both to create and to delete",
            "keep one of the two",
        )


def _bad(manifest: Manifest, name: str, value: Any, message: str, remedy: str) -> Finding:
    return error("bad-annotation", manifest, _path(name), value, message, remedy)


def _path(name: str) -> tuple[str, ...]:
    return ("metadata", "annotations", name)


def _one_of(name: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(name, sorted(names), n=1)
    return f"did you mean {close[0]}?" if close else f"use one of {', '.join(sorted(names))}"
