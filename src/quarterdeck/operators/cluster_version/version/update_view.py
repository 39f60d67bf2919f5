"""What people see of the cluster's version and its updates, from ClusterVersion alone. Pure.

`inspect` makes the requests; the operator judges an update, not this module.
"""

from typing import Any, Literal

import msgspec

from quarterdeck.api.config_v1 import ClusterStatusCondition, ClusterVersion, UpdateState
from quarterdeck.operators.cluster_version.history import History, latest_completed
from quarterdeck.operators.cluster_version.version.updates import leaves_minor, way_back
from quarterdeck.registry.reference import digest_of, has_registry
from quarterdeck.status import find_condition
from quarterdeck.status.release_progress import progress_in
from quarterdeck.versions import parse_version

State = Literal["complete", "updating", "failing", "unknown"]
Answer = Literal["True", "False", "Unknown"]
_ANSWERS: dict[str, Answer] = {"True": "True", "False": "False"}


class Risk(msgspec.Struct, frozen=True, kw_only=True):
    """A known problem of a release."""

    name: str
    message: str
    url: str


class ListedUpdate(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A release to which the cluster can be updated."""

    version: str
    image: str
    recommended: Answer = "True"
    risks: tuple[Risk, ...] = ()
    """The risks of an update that is not recommended, or of which that is unknown."""
    blocked: bool = False
    """Whether it leaves the minor version while Upgradeable is False."""


class UpdateView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The version of a cluster, the update that is under way, and the updates there are."""

    version: str
    """The release that was completed last; empty if none was yet."""
    desired: str
    """The release that is complete or being applied."""
    image: str = ""
    state: State
    message: str = ""
    """What is being done, or why it cannot be done."""
    done: int | None = None
    total: int | None = None
    """How many manifests of the release are done, while it is being applied."""
    failing: str = ""
    requested: str = ""
    """The release in `spec.desiredUpdate`."""
    refused: str = ""
    """Why the requested release is not accepted."""
    retrieving: str = ""
    """What is awaited before the requested release is accepted or refused."""
    blocked: str = ""
    """Why minor updates are blocked."""
    not_retrieved: str = ""
    """Why the update service could not be asked."""
    turn_back_to: str = ""
    """The release to which an update that is not complete can be turned back."""
    updates: tuple[ListedUpdate, ...] | None = None
    """The possible updates, newest first; None while they are not known."""
    generation: int = 0
    observed_generation: int = 0

    @property
    def is_observed(self) -> bool:
        """Whether the operator has acted on the newest change of the spec."""
        return self.observed_generation >= self.generation


def update_view(version: ClusterVersion) -> UpdateView:
    """The view of a ClusterVersion."""
    status, wanted = version.status, version.spec.desired_update
    generation = version.metadata.generation or 0
    requested = (wanted.version or wanted.image or "") if wanted else ""
    if status is None:
        return UpdateView(
            version="", desired="", state="unknown", requested=requested, generation=generation
        )
    progressing = _condition(version, "Progressing")
    message = progressing.message if progressing else ""
    counted = progress_in(message) if progressing and progressing.status == "True" else None
    done = latest_completed(status.history)
    return UpdateView(
        version=(done.version or done.image) if done else "",
        desired=status.desired.version or status.desired.image,
        image=status.desired.image,
        state=_state(version),
        message=message,
        done=counted.done if counted else None,
        total=counted.total if counted else None,
        failing=_message_if(version, "Failing", "True"),
        requested=requested,
        refused=_message_if(version, "ReleaseAccepted", "False"),
        retrieving=_message_if(version, "ReleaseAccepted", "Unknown"),
        blocked=_message_if(version, "Upgradeable", "False"),
        not_retrieved=_message_if(version, "RetrievedUpdates", "False"),
        turn_back_to=way_back(status.history),
        updates=_possible_updates(version),
        generation=generation,
        observed_generation=status.observed_generation,
    )


def update_patch(version: str, image: str, *, force: bool) -> dict[str, Any]:
    """The patch of ClusterVersion that requests an update."""
    update = {
        "version": version or None,
        "image": image or None,
        "force": True if force else None,
        "architecture": None,
    }
    return {"spec": {"desiredUpdate": update}}


def unaccepted_risks(
    view: UpdateView, version: str, image: str, accepted: frozenset[str]
) -> tuple[Risk, ...]:
    """The risks of an update that its user has not accepted yet.

    An image by tag alone may be any of the updates with risks, so it has the risks of all.
    """
    risky = [each for each in view.updates or () if each.recommended != "True"]
    if digest := digest_of(image):
        named = [each for each in risky if digest_of(each.image) == digest]
    elif has_registry(image):
        named = risky
    else:
        named = [each for each in risky if image == each.image]
    named += [each for each in risky if version and version == each.version]
    risks = {risk.name: risk for each in named for risk in each.risks}
    return tuple(risk for name, risk in risks.items() if name not in accepted)


def _state(version: ClusterVersion) -> State:
    status = version.status
    if status is None or not status.history:
        return "unknown"
    failing = _condition(version, "Failing")
    if failing is not None and failing.status == "True":
        return "failing"
    return "complete" if _is_complete(status.history) else "updating"


def _is_complete(history: History) -> bool:
    return history[0].state == UpdateState.COMPLETED


def _possible_updates(version: ClusterVersion) -> tuple[ListedUpdate, ...] | None:
    status = version.status
    if status is None or (status.available_updates is None and not status.conditional_updates):
        return None
    blocked = bool(_message_if(version, "Upgradeable", "False"))
    running = status.desired.version
    found = [
        ListedUpdate(
            version=release.version,
            image=release.image,
            blocked=blocked and leaves_minor(running, release.version),
        )
        for release in status.available_updates or ()
    ]
    for update in status.conditional_updates:
        recommended = find_condition(update.conditions, "Recommended")
        found.append(
            ListedUpdate(
                version=update.release.version,
                image=update.release.image,
                recommended=_ANSWERS.get(recommended.status if recommended else "", "Unknown"),
                risks=tuple(
                    Risk(name=risk.name, message=risk.message, url=risk.url)
                    for risk in update.risks
                ),
                blocked=blocked and leaves_minor(running, update.release.version),
            )
        )
    return tuple(sorted(found, key=_by_version, reverse=True))


def _by_version(update: ListedUpdate) -> tuple[bool, Any, str]:
    parsed = parse_version(update.version)
    return (True, parsed, "") if parsed is not None else (False, None, update.version)


def _condition(version: ClusterVersion, type_: str) -> ClusterStatusCondition | None:
    return find_condition(version.status.conditions, type_) if version.status else None


def _message_if(version: ClusterVersion, type_: str, status: str) -> str:
    found = _condition(version, type_)
    return (found.message or found.reason) if found and found.status == status else ""
