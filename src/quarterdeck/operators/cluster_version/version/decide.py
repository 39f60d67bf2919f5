"""Decides which release to apply: the newest in the history, or one that replaces it.

The history is the only state: any leader continues with its newest release, after any crash. If the
history is empty, the release of the operator's own image, or of its own version, is the first one.
Another release replaces the newest one only if `updates.judge` allows it and its payload can be
loaded.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from quarterdeck.api.config_v1 import Release
from quarterdeck.operators.cluster_version.history import History, started
from quarterdeck.operators.cluster_version.payloads import Loaded
from quarterdeck.operators.cluster_version.version.updates import (
    FIELD,
    MAX_RELEASES_LISTED,
    Move,
    UpdateRefused,
    UpdateRequest,
    has_verified,
    judge,
    missing_image,
)
from quarterdeck.payload.model import Payload, PayloadError
from quarterdeck.payload.releases import Offer, Releases
from quarterdeck.registry.reference import digest_of, has_registry

MAX_PROBLEMS_LISTED = 5


class ReleaseDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The release to apply, and why another one is refused."""

    release: Release
    history: History
    loaded: Loaded | None
    """The release's payload; None if it cannot be used, so that nothing is applied."""
    refused: UpdateRefused | None = None
    """Why `spec.desiredUpdate` is refused."""
    unusable: UpdateRefused | None = None
    """Why the release's own payload cannot be used."""


Load = Callable[[Offer], Awaitable[Loaded | UpdateRefused]]
"""Loads a release's payload, or returns why it cannot be applied; `decide` adds the field."""


async def decide(asked: UpdateRequest, load: Load, first: str, now: datetime) -> ReleaseDecision:
    """Judge the requested update, load the payload, and return the decision."""
    if not asked.history:
        return await _begin_first(asked, load, first, now)
    outcome = judge(asked)
    refused = outcome if isinstance(outcome, UpdateRefused) else None
    if isinstance(outcome, Move):
        release = outcome.offer.release
        wanted = await load(outcome.offer)
        if isinstance(wanted, Loaded):
            history = started(
                asked.history,
                release,
                now,
                risks=outcome.risks,
                image=outcome.image,
                verified=outcome.verified,
            )
            return ReleaseDecision(release=release, history=history, loaded=wanted)
        refused = msgspec.structs.replace(wanted, field=f"{FIELD}.version")
    newest = asked.history[0]
    offer = current_offer(asked)
    release = offer.release if offer else Release(version=newest.version or "", image=newest.image)
    found = await load(offer) if offer else _missing_current(asked)
    return _decided(release, asked.history, found, "status.desired", refused)


def current_offer(asked: UpdateRequest) -> Offer | None:
    """The release of the newest history entry, if it is there; an image counts by its digest."""
    newest = asked.history[0]
    if digest := digest_of(newest.image):
        return asked.releases.by_digest(digest)
    version = newest.version or ""
    return asked.releases.by_version(version) or asked.releases.by_image(newest.image)


def _missing_current(asked: UpdateRequest) -> UpdateRefused:
    newest = asked.history[0]
    if digest_of(newest.image):
        return missing_image(newest.image, asked)
    return missing(newest.version or "", asked.releases)


def first_offer(asked: UpdateRequest, version: str) -> Offer | None:
    """The first release of a cluster: by the digest of its image, its version, or its image."""
    image, releases = asked.first_image, asked.releases
    digest = digest_of(image) or asked.images.resolved.get(image, "")
    by_image = releases.by_image(image) if image else None
    return releases.by_digest(digest) or releases.by_version(version) or by_image


async def _begin_first(
    asked: UpdateRequest, load: Load, first: str, now: datetime
) -> ReleaseDecision:
    offer = first_offer(asked, first)
    release = offer.release if offer else Release(version=first, image="")
    field = "RELEASE_VERSION"
    if offer is not None:
        found = await load(offer)
    elif has_registry(asked.first_image):
        field, found = "RELEASE_IMAGE", missing_image(asked.first_image, asked)
    else:
        found = missing(first, asked.releases)
    history: History = ()
    if isinstance(found, Loaded) and offer is not None:
        history = started((), release, now, verified=has_verified(offer, asked))
    return _decided(release, history, found, field)


def _decided(
    release: Release,
    history: History,
    found: Loaded | UpdateRefused,
    field: str,
    refused: UpdateRefused | None = None,
) -> ReleaseDecision:
    if isinstance(found, Loaded):
        return ReleaseDecision(release=release, history=history, loaded=found, refused=refused)
    unusable = msgspec.structs.replace(found, field=field)
    return ReleaseDecision(
        release=release, history=history, loaded=None, refused=refused, unusable=unusable
    )


def missing(version: str, releases: Releases) -> UpdateRefused:
    """The refusal of a release that the releases directory does not have."""
    told = "".join(f"; {problem}" for problem in releases.problems[:MAX_PROBLEMS_LISTED])
    others = ", ".join(offer.release.version for offer in releases.offers[:MAX_RELEASES_LISTED])
    return UpdateRefused(
        reason="ReleaseNotFound",
        field="",
        value=version,
        message=f"there is no such release in {releases.place}, only {others or 'none'}{told}",
        remedy="put it there, or name another directory",
    )


def broken(version: str, error: PayloadError) -> UpdateRefused:
    """The refusal of a release whose payload cannot be read, with file and line."""
    problems = [str(problem) for problem in error.problems[:MAX_PROBLEMS_LISTED]]
    if len(error.problems) > MAX_PROBLEMS_LISTED:
        problems.append(f"and {len(error.problems) - MAX_PROBLEMS_LISTED} more")
    return UpdateRefused(
        reason="RetrievePayload",
        field="",
        value=version,
        message="its payload cannot be read, and nothing of it is applied: " + " | ".join(problems),
        remedy="repair the release; it is looked at again by itself",
    )


def empty(payload: Payload, profile: str) -> UpdateRefused:
    """The refusal of a release without an included manifest, most likely for a wrong profile."""
    return UpdateRefused(
        reason="NothingIncluded",
        field="",
        value=payload.release.version,
        message=f"none of its {len(payload.manifests)} manifests counts on this cluster,"
        f" whose profile is {profile}",
        remedy="correct --cluster-profile, or the manifests' annotations: see `payload why`",
    )
