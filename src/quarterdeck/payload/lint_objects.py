"""Lint: objects that collide, that are missing beside their CRD, or that no cluster ever gets."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import combinations

from quarterdeck.payload import annotations as known
from quarterdeck.payload.filters import excluded_by
from quarterdeck.payload.findings import (
    Finding,
    Severity,
    error,
    warning,
)
from quarterdeck.payload.model import Identity, Manifest, Payload
from quarterdeck.payload.worlds import Worlds

_FEATURE_SET_PATH = ("metadata", "annotations", known.FEATURE_SET)


def duplicates(payload: Payload, worlds: Worlds) -> Iterator[Finding]:
    """The same object twice for one cluster: the second would undo the first, for ever."""
    by_identity: defaultdict[Identity, list[Manifest]] = defaultdict(list)
    for manifest in payload.manifests:
        by_identity[manifest.identity].append(manifest)
    for identity, manifests in by_identity.items():
        for first, second in combinations(manifests, 2):
            if both := worlds.of(first) & worlds.of(second):
                yield error(
                    "duplicate-object",
                    second,
                    ("metadata", "name"),
                    str(identity),
                    f"also in {first.place}, both for {worlds.describe(both)}",
                    "keep one, or annotate them for different profiles or feature sets",
                )


def definitions(payload: Payload, worlds: Worlds) -> Iterator[Finding]:
    """A CRD without its object, or an object without its CRD, in some feature set.

    An object counts as a CRD's own only where the CRD is not in every feature set: then the two
    are one feature, and must come and go together. A kind that is always there may well have
    objects that are not.
    """
    crds: defaultdict[tuple[str, str], list[Manifest]] = defaultdict(list)
    for manifest in payload.manifests:
        if (kind := _defined_kind(manifest)) is not None:
            crds[kind].append(manifest)
    objects: defaultdict[Identity, list[Manifest]] = defaultdict(list)
    for manifest in payload.manifests:
        if manifest.identity[:2] in crds:
            objects[manifest.identity].append(manifest)
    for identity, manifests in objects.items():
        yield from _compare(identity, manifests, crds[identity[:2]], worlds)


def never_included(
    payload: Payload, worlds: Worlds, explained: Collection[tuple[str, int | None]]
) -> Iterator[Finding]:
    """Manifests that no profile and feature set takes; one finding if that is all of them.

    Those with findings of their own, by file and document, are `explained` by them.
    """
    never = [
        manifest
        for manifest in payload.manifests
        if not worlds.of(manifest)
        and not _config_operator_only(manifest)
        and (manifest.file, manifest.document) not in explained
    ]
    if never and len(never) == len(payload.manifests):
        yield Finding(
            severity=Severity.WARNING,
            code="nothing-included",
            file=never[0].file,
            path=("metadata", "annotations"),
            value=f"{len(never)} manifests",
            message="no profile and feature set takes any manifest of this payload",
            remedy=f'annotate them with {known.INCLUDE}<profile>: "true"',
        )
        return
    for manifest in never:
        verdict = excluded_by(manifest, worlds.all[0].observed)
        yield warning(
            "never-included",
            manifest,
            ("metadata", "annotations"),
            str(manifest.identity),
            f"no profile and feature set takes it; first of all, {verdict and verdict.reason}",
            "correct its annotations, or remove it from the payload",
        )


def _compare(
    identity: Identity, objects: list[Manifest], crds: list[Manifest], worlds: Worlds
) -> Iterator[Finding]:
    with_crd = _union(crds, worlds)
    with_object = _union(objects, worlds)
    missing = 0
    for profile in dict.fromkeys(world.profile for world in worlds.all):
        here = worlds.where(profile=profile)
        feature = with_crd & here != here  # the CRD is not in every feature set
        if feature and with_object & here:
            missing |= here & with_crd & ~with_object
    if missing:
        yield warning(
            "crd-without-cr",
            crds[-1],
            _FEATURE_SET_PATH,
            str(identity),
            f"the CRD is there but its object is not, for {worlds.describe(missing)}; "
            f"the object is in {', '.join(manifest.place for manifest in objects)}",
            "add the object for these feature sets, or take the CRD out of them",
        )
    if undefined := with_object & ~with_crd:
        yield error(
            "cr-without-crd",
            objects[-1],
            _FEATURE_SET_PATH,
            str(identity),
            f"the object is there but its CRD is not, for {worlds.describe(undefined)}",
            "add the CRD for these, or take the object out of them",
        )


def _union(manifests: list[Manifest], worlds: Worlds) -> int:
    bits = 0
    for manifest in manifests:
        bits |= worlds.of(manifest)
    return bits


def _defined_kind(manifest: Manifest) -> tuple[str, str] | None:
    """The group and kind that a CRD defines; None for everything else."""
    spec = manifest.object.get("spec")
    if manifest.object["kind"] != "CustomResourceDefinition" or not isinstance(spec, dict):
        return None
    names = spec.get("names")
    kind = names.get("kind") if isinstance(names, dict) else None
    group = spec.get("group")
    return (group, kind) if isinstance(group, str) and isinstance(kind, str) else None


def _config_operator_only(manifest: Manifest) -> bool:
    return known.CONFIG_OPERATOR_ONLY in manifest.annotations.values()
