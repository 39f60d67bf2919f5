"""Which release is to be applied: the newest in the history, or one that takes its place.

The history is the memory: what it says was begun is gone on with, after any crash and by whichever
process leads. Only where it is empty does the operator's own version say what to begin with. A
release takes over when `updates.judge` lets it and its payload can be loaded, never before.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from quarterdeck.api.config_v1 import Release
from quarterdeck.operators.cluster_version.history import History, started
from quarterdeck.operators.cluster_version.payloads import Loaded
from quarterdeck.operators.cluster_version.version.updates import (
    FIELD,
    Asked,
    Move,
    Refused,
    judge,
)
from quarterdeck.payload.model import Payload, PayloadError
from quarterdeck.payload.releases import Offer, Releases

PROBLEMS_TOLD = 5


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be applied, and what is said of what was asked for."""

    release: Release
    history: History
    loaded: Loaded | None
    """The release's payload; None where it cannot be used, and then nothing is applied."""
    refused: Refused | None = None
    """Why `spec.desiredUpdate` is not followed."""
    unusable: Refused | None = None
    """Why the release's own payload cannot be used."""


Load = Callable[[Offer], Awaitable[Loaded | Refused]]
"""Loads a release's payload, or says why it cannot be applied; the field is filled in here."""


async def decide(asked: Asked, load: Load, first: str, now: datetime) -> Decision:
    """Judge what is asked for and load what is to be applied."""
    if not asked.history:
        return await _begin_first(asked.releases, load, first, now)
    outcome = judge(asked)
    refused = outcome if isinstance(outcome, Refused) else None
    if isinstance(outcome, Move):
        release = outcome.offer.release
        wanted = await load(outcome.offer)
        if isinstance(wanted, Loaded):
            history = started(asked.history, release, now, risks=outcome.risks)
            return Decision(release=release, history=history, loaded=wanted)
        refused = msgspec.structs.replace(wanted, field=f"{FIELD}.version")
    newest = asked.history[0]
    version = newest.version or ""
    offer = asked.releases.by_version(version) or asked.releases.by_image(newest.image)
    release = offer.release if offer else Release(version=version, image=newest.image)
    found = await load(offer) if offer else missing(version, asked.releases)
    return _decided(release, asked.history, found, "status.desired", refused)


async def _begin_first(releases: Releases, load: Load, first: str, now: datetime) -> Decision:
    offer = releases.by_version(first)
    release = offer.release if offer else Release(version=first, image="")
    found = await load(offer) if offer else missing(first, releases)
    history = started((), release, now) if isinstance(found, Loaded) else ()
    return _decided(release, history, found, "RELEASE_VERSION")


def _decided(
    release: Release,
    history: History,
    found: Loaded | Refused,
    field: str,
    refused: Refused | None = None,
) -> Decision:
    if isinstance(found, Loaded):
        return Decision(release=release, history=history, loaded=found, refused=refused)
    unusable = msgspec.structs.replace(found, field=field)
    return Decision(
        release=release, history=history, loaded=None, refused=refused, unusable=unusable
    )


def missing(version: str, releases: Releases) -> Refused:
    """A release that is needed and that the releases directory does not have."""
    told = "".join(f"; {problem}" for problem in releases.problems[:PROBLEMS_TOLD])
    return Refused(
        reason="ReleaseNotFound",
        field="",
        value=version,
        message=f"there is no such release in the releases directory{told}",
        remedy="put it there",
    )


def broken(version: str, error: PayloadError) -> Refused:
    """A release whose payload has faults: all of them, with file and line."""
    problems = [str(problem) for problem in error.problems[:PROBLEMS_TOLD]]
    if len(error.problems) > PROBLEMS_TOLD:
        problems.append(f"and {len(error.problems) - PROBLEMS_TOLD} more")
    return Refused(
        reason="RetrievePayload",
        field="",
        value=version,
        message="its payload cannot be read, and nothing of it is applied: " + " | ".join(problems),
        remedy="repair the release; it is looked at again by itself",
    )


def empty(payload: Payload, profile: str) -> Refused:
    """A release of which nothing counts: a wrong profile, most probably, and no success."""
    return Refused(
        reason="NothingIncluded",
        field="",
        value=payload.release.version,
        message=f"none of its {len(payload.manifests)} manifests counts on this cluster,"
        f" whose profile is {profile}",
        remedy="correct --cluster-profile, or the manifests' annotations: see `payload why`",
    )
