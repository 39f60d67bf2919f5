"""Lint: duplicate objects, objects without their CRD, objects that no cluster includes."""

from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import combinations

from quarterdeck.api.meta import BUILT_IN_NAMESPACES
from quarterdeck.payload import annotations as known
from quarterdeck.payload.filters import excluded_by
from quarterdeck.payload.findings import (
    Finding,
    Severity,
    error,
    warning,
)
from quarterdeck.payload.model import Manifest, ObjectIdentity, Payload
from quarterdeck.payload.variants import ClusterVariants

_FEATURE_SET_PATH = ("metadata", "annotations", known.FEATURE_SET)


def duplicates(payload: Payload, variants: ClusterVariants) -> Iterator[Finding]:
    """The same object twice for one cluster: each would undo the other."""
    by_identity: defaultdict[ObjectIdentity, list[Manifest]] = defaultdict(list)
    for manifest in payload.manifests:
        by_identity[manifest.identity].append(manifest)
    for identity, manifests in by_identity.items():
        for first, second in combinations(manifests, 2):
            if both := variants.of(first) & variants.of(second):
                yield error(
                    "duplicate-object",
                    second,
                    ("metadata", "name"),
                    str(identity),
                    f"also in {first.place}, both for {variants.describe(both)}",
                    "keep one, or annotate them for different profiles or feature sets",
                )


def definitions(payload: Payload, variants: ClusterVariants) -> Iterator[Finding]:
    """CRDs without their object, and objects without their CRD, in some feature set.

    An object must be included together with its CRD only if the CRD is not in every feature set:
    then both belong to one feature. A kind in every feature set may have objects that are not.
    """
    crds: defaultdict[tuple[str, str], list[Manifest]] = defaultdict(list)
    for manifest in payload.manifests:
        if (kind := _defined_kind(manifest)) is not None:
            crds[kind].append(manifest)
    objects: defaultdict[ObjectIdentity, list[Manifest]] = defaultdict(list)
    for manifest in payload.manifests:
        if manifest.identity[:2] in crds:
            objects[manifest.identity].append(manifest)
    for identity, manifests in objects.items():
        yield from _compare(identity, manifests, crds[identity[:2]], variants)


def missing_namespaces(payload: Payload) -> Iterator[Finding]:
    """Namespaces that the payload uses and does not create; one finding for each."""
    created = {
        manifest.identity.name
        for manifest in payload.manifests
        if manifest.identity[:2] == ("", "Namespace")
    }
    known_so_far = created | BUILT_IN_NAMESPACES
    for manifest in payload.manifests:
        namespace = manifest.identity.namespace
        if namespace and namespace not in known_so_far:
            known_so_far = known_so_far | {namespace}
            yield warning(
                "missing-namespace",
                manifest,
                ("metadata", "namespace"),
                namespace,
                "no manifest of this payload creates the namespace",
                "add a Namespace to the payload, or make sure that every cluster has it",
            )


def never_included(
    payload: Payload, variants: ClusterVariants, explained: Collection[tuple[str, int | None]]
) -> Iterator[Finding]:
    """Manifests that no profile and feature set includes; one finding if those are all.

    Manifests in `explained`, by file and document, have other findings.
    """
    never = [
        manifest
        for manifest in payload.manifests
        if not variants.of(manifest)
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
        result = excluded_by(manifest, variants.all[0].observed)
        yield warning(
            "never-included",
            manifest,
            ("metadata", "annotations"),
            str(manifest.identity),
            f"no profile and feature set takes it; first of all, {result and result.reason}",
            "correct its annotations, or remove it from the payload",
        )


def _compare(
    identity: ObjectIdentity,
    objects: list[Manifest],
    crds: list[Manifest],
    variants: ClusterVariants,
) -> Iterator[Finding]:
    with_crd = _union(crds, variants)
    with_object = _union(objects, variants)
    missing = 0
    for profile in dict.fromkeys(variant.profile for variant in variants.all):
        here = variants.where(profile=profile)
        feature = with_crd & here != here  # the CRD is not in every feature set
        if feature and with_object & here:
            missing |= here & with_crd & ~with_object
    if missing:
        yield warning(
            "crd-without-cr",
            crds[-1],
            _FEATURE_SET_PATH,
            str(identity),
            f"the CRD is there but its object is not, for {variants.describe(missing)}; "
            f"the object is in {', '.join(manifest.place for manifest in objects)}",
            "add the object for these feature sets, or take the CRD out of them",
        )
    if undefined := with_object & ~with_crd:
        yield error(
            "cr-without-crd",
            objects[-1],
            _FEATURE_SET_PATH,
            str(identity),
            f"the object is there but its CRD is not, for {variants.describe(undefined)}",
            "add the CRD for these, or take the object out of them",
        )


def _union(manifests: list[Manifest], variants: ClusterVariants) -> int:
    bits = 0
    for manifest in manifests:
        bits |= variants.of(manifest)
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
