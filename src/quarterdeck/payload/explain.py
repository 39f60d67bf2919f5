"""Why a manifest counts or not: which manifests a person means, and what each filter says."""

import difflib

import msgspec

from quarterdeck.payload.filters import Verdict, verdicts
from quarterdeck.payload.model import Identity, Manifest, Payload
from quarterdeck.payload.observed import ObservedCluster


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What the nine filters say of one manifest."""

    manifest: Manifest
    verdicts: tuple[Verdict, ...]

    @property
    def excluded_by(self) -> Verdict | None:
        """The first filter that excludes it; None if it counts."""
        return next((verdict for verdict in self.verdicts if verdict.reason is not None), None)


def explain(manifest: Manifest, observed: ObservedCluster) -> Explanation:
    """All nine verdicts on a manifest."""
    return Explanation(manifest=manifest, verdicts=verdicts(manifest, observed))


def explain_all(payload: Payload, what: str, observed: ObservedCluster) -> tuple[Explanation, ...]:
    """The verdicts on each manifest that a text means; see `find_manifests`."""
    return tuple(explain(manifest, observed) for manifest in find_manifests(payload, what))


def find_manifests(payload: Payload, what: str) -> tuple[Manifest, ...]:
    """The manifests that a text means: a file, KIND/NAME, or KIND/NAMESPACE/NAME.

    The kind is taken in any case, with or without its group: `Deployment.apps`.
    """
    return tuple(
        manifest
        for manifest in payload.manifests
        if what in (manifest.file, manifest.file.rpartition("/")[2])
        or _is_meant(manifest.identity, what)
    )


def suggestions(payload: Payload, what: str) -> list[str]:
    """The nearest things that could have been meant."""
    names = {f"{m.identity.kind}/{m.identity.name}" for m in payload.manifests}
    names |= {manifest.file.rpartition("/")[2] for manifest in payload.manifests}
    return difflib.get_close_matches(what, sorted(names), n=3, cutoff=0.5)


def _is_meant(identity: Identity, what: str) -> bool:
    kind, *rest = what.split("/")
    kinds = (identity.kind.lower(), f"{identity.kind}.{identity.group}".lower())
    return kind.lower() in kinds and rest in ([identity.name], [identity.namespace, identity.name])
