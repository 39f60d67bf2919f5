"""Decides whether the cluster may move to the release in `spec.desiredUpdate`.

The first rule that objects refuses the update. A refused update is judged again and again: it
begins by itself when no rule objects any more. An update that has begun is not judged again. It
continues whatever `Upgradeable` becomes, and also if `spec.desiredUpdate` is removed.

- *Listed*: a release lists the versions from which it can be reached. During an update parts of
  several versions run, and the release must list all of them: no part makes a move that was not
  tested. That holds for moves down too. If `spec.upstream` names an update service, the edges of
  its graph decide in place of these lists. One move needs no listing: from an update that is not
  complete back to the release that was completed last, within its minor version (`way_back`).
- *Verified*: with a verification key, a release that was fetched must be signed with it.
- *Blocked*: unmanaged overrides, Upgradeable=False and stale operators block a move to a higher
  minor version; any other move is allowed, with a warning.
- *Forced*: `force` overrides blockers and a missing verification, and the history records what was
  overridden. It does not help a release that is unknown, not listed, or invalid.

This module does not know whether the payload can be loaded; `decide` loads it before the update
begins.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from quarterdeck.api.config_v1 import Release, Update
from quarterdeck.operators.cluster_version.history import (
    History,
    latest_completed,
    maybe_running,
)
from quarterdeck.operators.cluster_version.retrieval.images import NotFetched
from quarterdeck.operators.cluster_version.version.blockers import Blocker, summary
from quarterdeck.payload.releases import Offer, Releases
from quarterdeck.registry.reference import digest_of, has_registry
from quarterdeck.update_graph.updates import OfferedUpdates
from quarterdeck.versions import parse_version

MAX_RELEASES_LISTED = 10
FIELD = "spec.desiredUpdate"


class ImageNews(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of images that are not fetched yet."""

    failures: Mapping[str, NotFetched] = {}
    resolved: Mapping[str, str] = {}
    """By image with a tag: its digest."""
    key: str = ""
    """The identifier of the key that has to have verified a fetched release; empty without one."""


class UpdateService(msgspec.Struct, frozen=True, kw_only=True):
    """What the update service offers."""

    channel: str
    offered: OfferedUpdates | None = None
    """None if its graph is not known."""
    fault: str = ""
    """Why it is not known, with what to do; empty while it is asked for the first time."""


class UpdateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a judgement."""

    update: Update | None
    history: History
    releases: Releases
    blockers: tuple[Blocker, ...] = ()
    service: UpdateService | None = None
    """The update service of `spec.upstream`; None without one."""
    images: ImageNews = ImageNews()
    first_image: str = ""
    """The image of the first release of a cluster without history; may be empty."""

    @property
    def running(self) -> tuple[str, ...]:
        """The versions of which parts may run; the first one is being applied."""
        return maybe_running(self.history)

    @property
    def way_back(self) -> str:
        """The version to which an update can be turned back, if its release is there; or empty."""
        back = way_back(self.history)
        offer = self.releases.by_version(back) if back else None
        return back if offer is not None and _turns_back(offer, self) else ""


class Stay(msgspec.Struct, frozen=True):
    """No update is requested, or only to the release that runs or is being applied."""


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """The update may begin."""

    offer: Offer
    risks: str = ""
    """The warnings that are overridden, for the history."""
    image: str = ""
    """The image for the history: as it is requested, with its digest."""
    verified: bool = False


class UpdateRefused(msgspec.Struct, frozen=True, kw_only=True):
    """The update may not begin."""

    reason: str
    field: str
    value: str
    message: str
    remedy: str
    pending: bool = False
    """Whether the answer is only not known yet."""

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
    offer = requested_offer(asked)
    if is_under_way(asked, offer):
        return Stay()
    if offer is None:
        return _unknown(update, asked)
    for judgement in RULES:
        if refused := judgement(update, offer, asked):
            return refused
    return Move(
        offer=offer,
        risks="\n".join(_risks(offer, asked)),
        image=_recorded_image(update, offer),
        verified=has_verified(offer, asked),
    )


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
    update: Update, offer: Offer, asked: UpdateRequest
) -> UpdateRefused | None:
    """Refuse an update whose version and image name different releases."""
    version = offer.release.version
    if update.version and version != update.version:
        return UpdateRefused(
            reason="VersionMismatch",
            field=f"{FIELD}.version",
            value=update.version,
            message=f"the release in the image {offer.release.image} has the version {version}",
            remedy="set one of version and image only, or correct the update service",
        )
    if update.image and update.version and not _names(update.image, offer, asked):
        return _other_image(update, f"release {version} has the image {offer.release.image}")
    offered = _offered(version, asked)
    if offered is not None and update.image and not _names(offered.image, offer, asked):
        return _other_image(
            update, f"the update service has the image {offered.image} for {version}"
        )
    return None


def _other_image(update: Update, message: str) -> UpdateRefused:
    return UpdateRefused(
        reason="ImageMismatch",
        field=f"{FIELD}.image",
        value=update.image or "",
        message=message,
        remedy="set one of version and image only",
    )


def is_another_version(_update: Update, offer: Offer, asked: UpdateRequest) -> UpdateRefused | None:
    """Refuse another image of the version that is applied already: nobody could tell them apart."""
    newest = asked.history[0]
    if offer.release.version != newest.version:
        return None
    return UpdateRefused(
        reason="SameVersion",
        field=f"{FIELD}.image",
        value=offer.release.image,
        message=f"it has the version {newest.version}, which runs from the image {newest.image}",
        remedy="build the release under another version",
    )


def is_verified(update: Update, offer: Offer, asked: UpdateRequest) -> UpdateRefused | None:
    """Refuse a fetched release that the verification key has not verified."""
    if update.force or is_trusted(offer, asked):
        return None
    if failed := asked.images.failures.get(wanted_image(asked)):
        return _not_fetched(wanted_image(asked), failed)
    return _retrieving(offer.release.image)


def way_is_listed(_update: Update, offer: Offer, asked: UpdateRequest) -> UpdateRefused | None:
    """Refuse a release that does not list every version of which parts may run."""
    target = offer.release.version
    if asked.service is not None:
        if _turns_back(offer, asked):
            return None
        return _edge_is_there(target, asked.service, asked)
    missing = [v for v in asked.running if v != target and v not in offer.previous]
    if not missing or _turns_back(offer, asked):
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


def _edge_is_there(
    target: str, service: UpdateService, asked: UpdateRequest
) -> UpdateRefused | None:
    """Refuse a release to which the update service has no edge."""
    if _offered(target, asked) is not None:
        return None
    if service.offered is None:
        return _not_offered_yet(target, service)
    offered = service.offered
    ways = [one.version for one in offered.available]
    ways += [one.release.version for one in offered.conditional]
    if asked.way_back:
        ways.append(f"{asked.way_back}, back to what was completed last,")
    ways = ways[:MAX_RELEASES_LISTED]
    return UpdateRefused(
        reason="NotReachable",
        field=f"{FIELD}.version",
        value=target,
        message=f"the update service's channel {service.channel!r} has no update from"
        f" {' and '.join(asked.running)} to it",
        remedy=f"move to {' or '.join(ways)} instead" if ways else "set another spec.channel",
    )


def _not_offered_yet(target: str, service: UpdateService) -> UpdateRefused:
    """The refusal while the update service has not answered."""
    return UpdateRefused(
        reason="UpdatesNotRetrieved",
        field=f"{FIELD}.version",
        value=target,
        message="whether it can be updated to is not known: the update service "
        + (f"does not answer: {service.fault}" if service.fault else "is being asked"),
        remedy="see the condition RetrievedUpdates; the update then begins by itself",
        pending=not service.fault,
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


def _turns_back(offer: Offer, asked: UpdateRequest) -> bool:
    """Whether a release is the one that was completed last: its version, and its digest."""
    done = latest_completed(asked.history)
    if done is None or offer.release.version != way_back(asked.history):
        return False
    return digest_of(done.image) in ("", offer.digest)


def nothing_blocks(update: Update, offer: Offer, asked: UpdateRequest) -> UpdateRefused | None:
    """Refuse a move to a higher minor version while something blocks it."""
    if (
        not asked.blockers
        or update.force
        or not leaves_minor(asked.running[0], offer.release.version)
    ):
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
    is_another_version,
    is_verified,
    way_is_listed,
    nothing_blocks,
)


def leaves_minor(running: str, target: str) -> bool:
    """Whether a move goes to a higher minor or major version; an unparsable version counts so."""
    old, new = parse_version(running), parse_version(target)
    return old is None or new is None or new.line > old.line


def wanted_image(asked: UpdateRequest) -> str:
    """The image of the requested release, if it has to come from one; otherwise empty.

    It is that of the request, of the update service, or of the last time that the version ran.
    """
    update = asked.update
    if update is None or not (update.version or update.image):
        return ""
    if update.image:
        return update.image
    version = update.version or ""
    if (offered := _offered(version, asked)) is not None:
        return offered.image
    if (known := asked.releases.by_version(version)) is not None:
        # One that was fetched without the key, or came with the operator, is verified first.
        return "" if is_trusted(known, asked) else known.release.image
    past = (entry.image for entry in asked.history if entry.version == version)
    return next((image for image in past if digest_of(image)), "")


def offer_of_image(image: str, asked: UpdateRequest) -> Offer | None:
    """The release of an image: a fetched one by its digest, one of the directory by its name."""
    digest = digest_of(image) or asked.images.resolved.get(image, "")
    return asked.releases.by_digest(digest) or asked.releases.by_image(image)


def requested_offer(asked: UpdateRequest) -> Offer | None:
    """The requested release, if it is there."""
    image = wanted_image(asked)
    if image:
        offer = offer_of_image(image, asked)
        if offer is not None or has_registry(image) or asked.update is None:
            return offer
    return asked.releases.by_version(asked.update.version or "") if asked.update else None


def is_under_way(asked: UpdateRequest, offer: Offer | None) -> bool:
    """Whether the requested release is the one that runs or is being applied."""
    newest, update = asked.history[0], asked.update
    if update is None:
        return True
    image = update.image or ""
    # A tag was resolved when the update began, and is written down with its digest.
    same = image in ("", newest.image) or newest.image.startswith(f"{image}@")
    same = same or (digest_of(image) != "" and digest_of(image) == digest_of(newest.image))
    wanted = update.version or (offer.release.version if offer is not None else "")
    if wanted and newest.version:
        return wanted == newest.version and same
    return bool(image) and same


def _offered(version: str, asked: UpdateRequest) -> Release | None:
    """The release of this version as the update service offers it."""
    offered = asked.service.offered if asked.service is not None else None
    return offered.release(version) if offered is not None else None


def _names(image: str, offer: Offer, asked: UpdateRequest) -> bool:
    """Whether an image is the one of this release."""
    if image == offer.release.image:
        return True
    digest = digest_of(image) or asked.images.resolved.get(image, "")
    return digest != "" and digest == offer.digest


def has_verified(offer: Offer, asked: UpdateRequest) -> bool:
    """Whether the key that counts now has verified a release."""
    return offer.verified_by != "" and offer.verified_by == asked.images.key


def is_trusted(offer: Offer, asked: UpdateRequest) -> bool:
    """Whether a release needs no verification any more."""
    return not offer.digest or not asked.images.key or has_verified(offer, asked)


def _recorded_image(update: Update, offer: Offer) -> str:
    """The image for the history; a requested tag stays visible, with the digest that it had."""
    image = update.image or ""
    if offer.digest and image and not digest_of(image):
        return f"{image}@{offer.digest}"
    return offer.release.image


def _risks(offer: Offer, asked: UpdateRequest) -> Iterator[str]:
    """The warnings that an update overrides."""
    if asked.blockers:
        yield summary(asked.blockers).message
    if not is_trusted(offer, asked):
        yield f"the image {offer.release.image} has no signature of the verification key"
    offered = asked.service.offered if asked.service is not None else None
    if offered is not None and (risks := offered.risks(offer.release.version)):
        yield f"the update is not recommended: {risks}"


def _not_fetched(image: str, failed: NotFetched) -> UpdateRefused:
    return UpdateRefused(
        reason=failed.reason,
        field=f"{FIELD}.image",
        value=image,
        message=f"the release cannot be retrieved, and nothing of it is applied: {failed.message}",
        remedy=f"{failed.remedy}; it is tried again by itself",
    )


def _retrieving(image: str) -> UpdateRefused:
    return UpdateRefused(
        reason="RetrievingPayload",
        field=f"{FIELD}.image",
        value=image,
        message="the release is being retrieved and verified",
        remedy="wait",
        pending=True,
    )


def missing_image(image: str, asked: UpdateRequest) -> UpdateRefused:
    """The refusal of an image that is not fetched: why, or that it is under way."""
    failed = asked.images.failures.get(image)
    return _not_fetched(image, failed) if failed is not None else _retrieving(image)


def _unknown(update: Update, asked: UpdateRequest) -> UpdateRefused:
    if has_registry(image := wanted_image(asked)):
        return missing_image(image, asked)
    if update.version and asked.service is not None:
        refused = _edge_is_there(update.version, asked.service, asked)
        if refused is not None and update.version != way_back(asked.history):
            return refused
    field, value = ("version", update.version) if update.version else ("image", update.image)
    return UpdateRefused(
        reason="ReleaseNotFound",
        field=f"{FIELD}.{field}",
        value=value or "",
        message="there is no such release"
        + (
            f" in {asked.releases.place}"
            if asked.releases.offers or asked.releases.directory
            else ""
        )
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
    if named:
        return f"choose one of: {', '.join(named)}"
    if releases.directory:
        return f"add it to {releases.place}"
    return f"name its image in {FIELD}.image, or an update service in spec.upstream"


def _sorted(versions: Sequence[str] | frozenset[str]) -> list[str]:
    parsed = [(parse_version(version), version) for version in versions]
    return [text for version, text in sorted((v, t) for v, t in parsed if v is not None)]
