"""Explains why manifests are included or excluded: finds them, and evaluates each filter."""

import difflib

import msgspec

from quarterdeck.payload.filters import FilterResult, filter_results
from quarterdeck.payload.model import Manifest, ObjectIdentity, Payload
from quarterdeck.payload.observed import ObservedCluster


class ManifestExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the nine filters for one manifest."""

    manifest: Manifest
    filter_results: tuple[FilterResult, ...]

    @property
    def excluded_by(self) -> FilterResult | None:
        """The first filter that excludes the manifest; None if it is included."""
        return next((result for result in self.filter_results if result.reason is not None), None)


def explain(manifest: Manifest, observed: ObservedCluster) -> ManifestExplanation:
    """The results of all nine filters for a manifest."""
    return ManifestExplanation(manifest=manifest, filter_results=filter_results(manifest, observed))


def explain_all(
    payload: Payload, what: str, observed: ObservedCluster
) -> tuple[ManifestExplanation, ...]:
    """The filter results of each manifest that `find_manifests` finds."""
    return tuple(explain(manifest, observed) for manifest in find_manifests(payload, what))


def find_manifests(payload: Payload, what: str) -> tuple[Manifest, ...]:
    """The manifests of a file, of KIND/NAME, or of KIND/NAMESPACE/NAME.

    The kind is not case-sensitive, and may have its group: `Deployment.apps`.
    """
    return tuple(
        manifest
        for manifest in payload.manifests
        if what in (manifest.file, manifest.file.rpartition("/")[2])
        or _is_meant(manifest.identity, what)
    )


def suggestions(payload: Payload, what: str) -> list[str]:
    """The names of manifests that are closest to the text."""
    names = {f"{m.identity.kind}/{m.identity.name}" for m in payload.manifests}
    names |= {manifest.file.rpartition("/")[2] for manifest in payload.manifests}
    return difflib.get_close_matches(what, sorted(names), n=3, cutoff=0.5)


def _is_meant(identity: ObjectIdentity, what: str) -> bool:
    kind, *rest = what.split("/")
    kinds = (identity.kind.lower(), f"{identity.kind}.{identity.group}".lower())
    return kind.lower() in kinds and rest in ([identity.name], [identity.namespace, identity.name])
