"""Whether a release that `spec.desiredUpdate` asks for may be moved to.

The rules are tried in order, and the first that has something against it refuses. What is asked
for again and again is judged again: an update that was refused begins by itself when what spoke
against it is gone. One that has begun is not judged again; it goes on, whatever then becomes of
`Upgradeable`, and `spec.desiredUpdate` removed changes nothing for it.

- *Listed*: a release says which versions it can be reached from. While an update is under way,
  parts of several versions run, and all of them must be listed: otherwise what was not reached
  yet would make a move that nobody has tried. That holds for moves down too. One move needs no
  listing: out of an update that is stuck, back to the release that was completed last, within its
  minor version (`way_back`).
- *Blocked*: unmanaged overrides and Upgradeable=False or a stale operator block a move to a
  higher minor version; any other move is allowed, with a warning.
- *Forced*: `force` moves although something blocks, as its description says, and the history
  keeps what was overridden. It does not help a release that is not known, not listed, or broken:
  there is nothing to be overridden there, only something missing.

Whether the release's payload can be loaded is not known here; `decide` asks before it begins.
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

FIELD = "spec.desiredUpdate"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """All that a judgement may know."""

    update: Update | None
    history: History
    releases: Releases
    blockers: tuple[Blocker, ...] = ()

    @property
    def running(self) -> tuple[str, ...]:
        """The versions of which parts may run; the first is the one that is being applied."""
        return maybe_running(self.history)


class Stay(msgspec.Struct, frozen=True):
    """Nothing is asked for, or just what is there already or on its way."""


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """The update may begin."""

    offer: Offer
    risks: str = ""
    """Warnings that are overridden; for the history."""


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """The update may not begin."""

    reason: str
    field: str
    value: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.field}: {self.value!r}: {self.message}; {self.remedy}"


def judge(asked: Asked) -> Stay | Move | Refused:
    """What becomes of `spec.desiredUpdate`."""
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


def names_a_release(update: Update) -> Refused | None:
    """An update says by version or by image what it wants."""
    if update.version or update.image:
        return None
    return Refused(
        reason="NoRelease",
        field=FIELD,
        value="",
        message="it names no release",
        remedy=f"set {FIELD}.version, or remove {FIELD}",
    )


def has_no_architecture(update: Update) -> Refused | None:
    """The releases that can be seen are each of one architecture."""
    if not update.architecture:
        return None
    return Refused(
        reason="UnknownArchitecture",
        field=f"{FIELD}.architecture",
        value=update.architecture,
        message="there are no releases for several architectures",
        remedy="remove the field",
    )


def image_and_version_agree(update: Update, offer: Offer, _asked: Asked) -> Refused | None:
    """Where both are given, both mean the same release."""
    if not (update.image and update.version) or update.image == offer.release.image:
        return None
    return Refused(
        reason="ImageMismatch",
        field=f"{FIELD}.image",
        value=update.image,
        message=f"release {update.version} has the image {offer.release.image}",
        remedy="set one of version and image only",
    )


def way_is_listed(_update: Update, offer: Offer, asked: Asked) -> Refused | None:
    """The release lists every version of which parts may run."""
    target = offer.release.version
    missing = [v for v in asked.running if v != target and v not in offer.previous]
    if not missing or target == way_back(asked.history):
        return None
    listed = ", ".join(_sorted(offer.previous)) or "none"
    partly = f", of which parts run until the update to {asked.running[0]} is complete"
    why = partly if len(asked.running) > 1 and missing != [asked.running[0]] else ""
    ways = [other.release.version for other in asked.releases.reachable(asked.running)]
    back = way_back(asked.history)
    if back and asked.releases.by_version(back) is not None and back not in ways:
        ways.append(f"{back}, back to what was completed last,")
    remedy = f"move to {' or '.join(ways)} instead" if ways else "choose a release that lists it"
    return Refused(
        reason="NotReachable",
        field=f"{FIELD}.version",
        value=target,
        message=f"it cannot be reached from {' and '.join(missing)}{why};"
        f" it lists as previous: {listed}",
        remedy=remedy,
    )


def way_back(history: History) -> str:
    """The version to which an update that is under way can be turned back, listed or not.

    It is the one that was completed last, while nothing of another minor version was begun since;
    empty where there is none.
    """
    done = latest_completed(history)
    if done is None or done is history[0] or not done.version:
        return ""
    begun = history[: history.index(done) + 1]
    versions = [parse_version(entry.version or "") for entry in begun]
    lines = {version.line if version else None for version in versions}
    return done.version if len(lines) == 1 and None not in lines else ""


def nothing_blocks(update: Update, offer: Offer, asked: Asked) -> Refused | None:
    """Nothing speaks against leaving the minor version, or it is not left upwards."""
    if not asked.blockers or update.force or not leaves_minor(asked.running[0], offer):
        return None
    said = summary(asked.blockers)
    return Refused(
        reason="UpgradeableFalse",
        field=f"{FIELD}.version",
        value=offer.release.version,
        message=f"a minor update from {asked.running[0]} is blocked:"
        + (f"\n{said.message}\n" if len(asked.blockers) > 1 else f" {said.message}"),
        remedy="mend that, or choose a patch release; it then begins by itself",
    )


RULES: tuple[Callable[[Update, Offer, Asked], Refused | None], ...] = (
    image_and_version_agree,
    way_is_listed,
    nothing_blocks,
)


def leaves_minor(running: str, offer: Offer) -> bool:
    """Whether a move goes up to another minor or major version; one not understood does."""
    version = parse_version(running)
    return version is None or offer.version.line > version.line


def _offer(update: Update, releases: Releases) -> Offer | None:
    if update.version:
        return releases.by_version(update.version)
    return releases.by_image(update.image or "")


def _is_under_way(update: Update, offer: Offer | None, asked: Asked) -> bool:
    newest = asked.history[0]
    wanted = offer.release.version if offer is not None else update.version
    if wanted and newest.version:
        return wanted == newest.version and update.image in (None, "", newest.image)
    return bool(update.image) and update.image == newest.image


def _unknown(update: Update, asked: Asked) -> Refused:
    field, value = ("version", update.version) if update.version else ("image", update.image)
    return Refused(
        reason="ReleaseNotFound",
        field=f"{FIELD}.{field}",
        value=value or "",
        message="there is no such release" + "".join(_problems(asked.releases)),
        remedy=_choices(asked.releases, field),
    )


def _problems(releases: Releases) -> Iterator[str]:
    """The releases that could not be read: the one that is meant may be among them."""
    for problem in releases.problems[:3]:
        yield f"; {problem}"
    if len(releases.problems) > 3:
        yield f"; and {len(releases.problems) - 3} more"


def _choices(releases: Releases, field: str) -> str:
    named = [getattr(offer.release, field) for offer in releases.offers[:10]]
    return f"choose one of: {', '.join(named)}" if named else "add it to the releases directory"


def _sorted(versions: Sequence[str] | frozenset[str]) -> list[str]:
    parsed = [(parse_version(version), version) for version in versions]
    return [text for version, text in sorted((v, t) for v, t in parsed if v is not None)]
