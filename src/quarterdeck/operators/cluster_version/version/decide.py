"""Which release is to be applied: the newest in the history, or one that takes its place.

The history is the memory: what it says was begun is gone on with, after any crash and by whichever
process leads. Only where it is empty does the operator's own version say what to begin with. A
release takes over when `updates.judge` lets it and its payload can be loaded, never before.
"""

from datetime import datetime

import msgspec

from quarterdeck.api.config_v1 import Release
from quarterdeck.operators.cluster_version.payload.model import PayloadError
from quarterdeck.operators.cluster_version.version.history import History, started
from quarterdeck.operators.cluster_version.version.payloads import Loaded, Payloads
from quarterdeck.operators.cluster_version.version.releases import Offer, Releases
from quarterdeck.operators.cluster_version.version.updates import (
    FIELD,
    Asked,
    Move,
    Refused,
    judge,
)

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


async def decide(asked: Asked, payloads: Payloads, first: str, now: datetime) -> Decision:
    """Judge what is asked for and load what is to be applied."""
    if not asked.history:
        return await _begin_first(asked.releases, payloads, first, now)
    outcome = judge(asked)
    refused = outcome if isinstance(outcome, Refused) else None
    if isinstance(outcome, Move):
        release = outcome.offer.release
        wanted = await payloads.load(outcome.offer)
        if isinstance(wanted, Loaded):
            history = started(asked.history, release, now, risks=outcome.risks)
            return Decision(release=release, history=history, loaded=wanted)
        refused = broken(f"{FIELD}.version", release.version, wanted)
    newest = asked.history[0]
    version = newest.version or ""
    offer = asked.releases.by_version(version) or asked.releases.by_image(newest.image)
    release = offer.release if offer else Release(version=version, image=newest.image)
    found = await payloads.load(offer) if offer else missing("status.desired", version, asked)
    return Decision(
        release=release,
        history=asked.history,
        loaded=found if isinstance(found, Loaded) else None,
        refused=refused,
        unusable=_unusable("status.desired", version, found),
    )


async def _begin_first(
    releases: Releases, payloads: Payloads, first: str, now: datetime
) -> Decision:
    offer: Offer | None = releases.by_version(first)
    release = offer.release if offer else Release(version=first, image="")
    asked = Asked(update=None, history=(), releases=releases)
    found = await payloads.load(offer) if offer else missing("RELEASE_VERSION", first, asked)
    usable = isinstance(found, Loaded)
    return Decision(
        release=release,
        history=started((), release, now) if usable else (),
        loaded=found if isinstance(found, Loaded) else None,
        unusable=_unusable("RELEASE_VERSION", first, found),
    )


def missing(field: str, version: str, asked: Asked) -> Refused:
    """A release that is needed and that the releases directory does not have."""
    told = "".join(f"; {problem}" for problem in asked.releases.problems[:PROBLEMS_TOLD])
    return Refused(
        reason="ReleaseNotFound",
        field=field,
        value=version,
        message=f"there is no such release in the releases directory{told}",
        remedy="put it there",
    )


def broken(field: str, version: str, error: PayloadError) -> Refused:
    """A release whose payload has faults: all of them, with file and line."""
    problems = [str(problem) for problem in error.problems[:PROBLEMS_TOLD]]
    if len(error.problems) > PROBLEMS_TOLD:
        problems.append(f"and {len(error.problems) - PROBLEMS_TOLD} more")
    return Refused(
        reason="RetrievePayload",
        field=field,
        value=version,
        message="its payload cannot be read, and nothing of it is applied: " + " | ".join(problems),
        remedy="repair the release; it is looked at again by itself",
    )


def _unusable(field: str, version: str, found: Loaded | PayloadError | Refused) -> Refused | None:
    match found:
        case Loaded():
            return None
        case Refused():
            return found
        case PayloadError():
            return broken(field, version, found)
