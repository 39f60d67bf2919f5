"""Decides whether the cluster may move to the release in `spec.desiredUpdate`.

The first rule that objects refuses the update. A refused update is judged again and again: it
begins by itself when no rule objects any more. An update that has begun is not judged again. It
continues whatever `Upgradeable` becomes, and also if `spec.desiredUpdate` is removed.

- *Listed*: a release lists the versions from which it can be reached. During an update parts of
  several versions run, and the release must list all of them: no part makes a move that was not
  tested. That holds for moves down too. One move needs no listing: from an update that is not
  complete back to the release that was completed last, within its minor version (`way_back`).
- *Blocked*: unmanaged overrides, Upgradeable=False and stale operators block a move to a higher
  minor version; any other move is allowed, with a warning.
- *Forced*: `force` overrides blockers, and the history records what was overridden. It does not
  help a release that is unknown, not listed, or invalid.

This module does not know whether the payload can be loaded; `decide` loads it before the update
begins.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from quarterdeck.api.config_v1 import Update
from quarterdeck.operators.cluster_version.history import (
    History,
    latest_completed,
    maybe_running,
)
from quarterdeck.operators.cluster_version.version.blockers import Blocker, summary
from quarterdeck.payload.releases import Offer, Releases
from quarterdeck.versions import parse_version

MAX_RELEASES_LISTED = 10
FIELD = "spec.desiredUpdate"


class UpdateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a judgement."""

    update: Update | None
    history: History
    releases: Releases
    blockers: tuple[Blocker, ...] = ()

    @property
    def running(self) -> tuple[str, ...]:
        """The versions of which parts may run; the first one is being applied."""
        return maybe_running(self.history)

    @property
    def way_back(self) -> str:
        """The version to which an update can be turned back, if its release is there; or empty."""
        back = way_back(self.history)
        return back if back and self.releases.by_version(back) is not None else ""


class Stay(msgspec.Struct, frozen=True):
    """No update is requested, or only to the release that runs or is being applied."""


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """The update may begin."""

    offer: Offer
    risks: str = ""
    """The warnings that are overridden, for the history."""


class UpdateRefused(msgspec.Struct, frozen=True, kw_only=True):
    """The update may not begin."""

    reason: str
    field: str
    value: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.field}: {self.value!r}: {self.message}; {self.remedy}"


def judge(asked: UpdateRequest) -> Stay | Move | UpdateRefused:
    """The judgement of `spec.desiredUpdate`."""
    update = asked.update
    if update is None or not asked.history:
        return Stay()
    for rule in (names_a_release, has_no_architecture):
        if refused := rule(update):
            return refused
    offer = _offer(update, asked.releases)
    if _is_under_way(update, offer, asked):
        return Stay()
    if offer is None:
        return _unknown(update, asked)
    for judgement in RULES:
        if refused := judgement(update, offer, asked):
            return refused
    return Move(offer=offer, risks=summary(asked.blockers).message if asked.blockers else "")


def names_a_release(update: Update) -> UpdateRefused | None:
    """Refuse an update without version and image."""
    if update.version or update.image:
        return None
    return UpdateRefused(
        reason="NoRelease",
        field=FIELD,
        value="",
        message="it names no release",
        remedy=f"set {FIELD}.version, or remove {FIELD}",
    )


def has_no_architecture(update: Update) -> UpdateRefused | None:
    """Refuse an update with an architecture: each release has only one."""
    if not update.architecture:
        return None
    return UpdateRefused(
        reason="UnknownArchitecture",
        field=f"{FIELD}.architecture",
        value=update.architecture,
        message="there are no releases for several architectures",
        remedy="remove the field",
    )


def image_and_version_agree(
    update: Update, offer: Offer, _asked: UpdateRequest
) -> UpdateRefused | None:
    """Refuse an update whose version and image name different releases."""
    if not (update.image and update.version) or update.image == offer.release.image:
        return None
    return UpdateRefused(
        reason="ImageMismatch",
        field=f"{FIELD}.image",
        value=update.image,
        message=f"release {update.version} has the image {offer.release.image}",
        remedy="set one of version and image only",
    )


def way_is_listed(_update: Update, offer: Offer, asked: UpdateRequest) -> UpdateRefused | None:
    """Refuse a release that does not list every version of which parts may run."""
    target = offer.release.version
    missing = [v for v in asked.running if v != target and v not in offer.previous]
    if not missing or target == way_back(asked.history):
        return None
    listed = ", ".join(_sorted(offer.previous)) or "none"
    partly = f", of which parts run until the update to {asked.running[0]} is complete"
    why = partly if len(asked.running) > 1 and missing != [asked.running[0]] else ""
    ways = [other.release.version for other in asked.releases.reachable(asked.running)]
    back = asked.way_back
    if back and back not in ways:
        ways.append(f"{back}, back to what was completed last,")
    remedy = f"move to {' or '.join(ways)} instead" if ways else "choose a release that lists it"
    return UpdateRefused(
        reason="NotReachable",
        field=f"{FIELD}.version",
        value=target,
        message=f"it cannot be reached from {' and '.join(missing)}{why};"
        f" it lists as previous: {listed}",
        remedy=remedy,
    )


def way_back(history: History) -> str:
    """The version to which an update can be turned back, listed or not; empty if there is none.

    It is the version that was completed last, if no other minor version was started since.
    """
    done = latest_completed(history)
    if done is None or done is history[0] or not done.version:
        return ""
    begun = history[: history.index(done) + 1]
    versions = [parse_version(entry.version or "") for entry in begun]
    lines = {version.line if version else None for version in versions}
    return done.version if len(lines) == 1 and None not in lines else ""


def nothing_blocks(update: Update, offer: Offer, asked: UpdateRequest) -> UpdateRefused | None:
    """Refuse a move to a higher minor version while something blocks it."""
    if not asked.blockers or update.force or not leaves_minor(asked.running[0], offer):
        return None
    said = summary(asked.blockers)
    return UpdateRefused(
        reason="UpgradeableFalse",
        field=f"{FIELD}.version",
        value=offer.release.version,
        message=f"a minor update from {asked.running[0]} is blocked:"
        + (f"\n{said.message}\n" if len(asked.blockers) > 1 else f" {said.message}"),
        remedy="mend that, or choose a patch release; it then begins by itself",
    )


RULES: tuple[Callable[[Update, Offer, UpdateRequest], UpdateRefused | None], ...] = (
    image_and_version_agree,
    way_is_listed,
    nothing_blocks,
)


def leaves_minor(running: str, offer: Offer) -> bool:
    """Whether a move goes to a higher minor or major version; an unparsable version counts so."""
    version = parse_version(running)
    return version is None or offer.version.line > version.line


def _offer(update: Update, releases: Releases) -> Offer | None:
    if update.version:
        return releases.by_version(update.version)
    return releases.by_image(update.image or "")


def _is_under_way(update: Update, offer: Offer | None, asked: UpdateRequest) -> bool:
    newest = asked.history[0]
    wanted = offer.release.version if offer is not None else update.version
    if wanted and newest.version:
        return wanted == newest.version and update.image in (None, "", newest.image)
    return bool(update.image) and update.image == newest.image


def _unknown(update: Update, asked: UpdateRequest) -> UpdateRefused:
    field, value = ("version", update.version) if update.version else ("image", update.image)
    return UpdateRefused(
        reason="ReleaseNotFound",
        field=f"{FIELD}.{field}",
        value=value or "",
        message=f"there is no such release in {asked.releases.place}"
        + "".join(_problems(asked.releases)),
        remedy=_choices(asked.releases, field),
    )


def _problems(releases: Releases) -> Iterator[str]:
    """The releases that could not be read; the requested one may be among them."""
    for problem in releases.problems[:3]:
        yield f"; {problem}"
    if len(releases.problems) > 3:
        yield f"; and {len(releases.problems) - 3} more"


def _choices(releases: Releases, field: str) -> str:
    named = [getattr(offer.release, field) for offer in releases.offers[:MAX_RELEASES_LISTED]]
    return f"choose one of: {', '.join(named)}" if named else f"add it to {releases.place}"


def _sorted(versions: Sequence[str] | frozenset[str]) -> list[str]:
    parsed = [(parse_version(version), version) for version in versions]
    return [text for version, text in sorted((v, t) for v, t in parsed if v is not None)]
