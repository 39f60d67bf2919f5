"""The updates that a cluster is offered, their risks, and which of these a form accepts. Pure."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from quarterdeck.api.meta import Object

ACCEPT = "accept-"
"""Begins the names of the fields that accept risks."""
SHELL_SAFE = re.compile(r"[0-9A-Za-z.+-]{1,128}")


class OfferedRisk(msgspec.Struct, frozen=True, kw_only=True):
    """A known problem of an update, which has to be accepted by its name."""

    name: str
    message: str
    url: str = ""


class OfferedUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """A version that the cluster can be updated to."""

    version: str
    url: str = ""
    recommended: bool = True
    risks: tuple[OfferedRisk, ...] = ()
    """The risks of an update that is not recommended for this cluster."""
    blocked: bool = False
    """Whether it leaves the minor version while that is blocked."""

    def accepting(self, risk: OfferedRisk) -> str:
        """What a form says to accept a risk of this update, and of no other."""
        return f"{self.version} {risk.name}"


class Offers(msgspec.Struct, frozen=True, kw_only=True):
    """The updates that there are."""

    updates: tuple[OfferedUpdate, ...] = ()
    blocked: str = ""
    """Why updates to another minor version are blocked."""
    unknown: str = ""
    """Why it is not known which updates there are."""


def offered(view: Object, version: Object) -> Offers:
    """The updates in the view of a ClusterVersion, the recommended ones first."""
    urls = _release_urls(version)
    found = [
        OfferedUpdate(
            version=one["version"],
            url=urls.get(one["version"], ""),
            recommended=one["recommended"] == "True",
            risks=tuple(
                OfferedRisk(
                    name=risk["name"], message=risk["message"], url=_web_address(risk["url"])
                )
                for risk in (one["risks"] if one["recommended"] != "True" else ())
            ),
            blocked=one["blocked"],
        )
        for one in view.get("updates") or ()
        if one["version"]
    ]
    return Offers(
        updates=tuple(sorted(found, key=lambda one: (one.blocked, not one.recommended))),
        blocked=str(view.get("blocked") or ""),
        unknown=str(view.get("notRetrieved") or "") if not found else "",
    )


def _release_urls(version: Object) -> dict[str, str]:
    """The web pages of the releases that a ClusterVersion offers."""
    status = version.get("status") or {}
    conditional = [one.get("release") or {} for one in status.get("conditionalUpdates") or ()]
    return {
        str(one.get("version") or ""): _web_address(one.get("url"))
        for one in (*(status.get("availableUpdates") or ()), *conditional)
    }


def unaccepted(update: OfferedUpdate, form: Mapping[str, str]) -> list[str]:
    """The names of the update's risks that a form does not accept."""
    accepted = {value for name, value in form.items() if name.startswith(ACCEPT)}
    return [risk.name for risk in update.risks if update.accepting(risk) not in accepted]


def version_to_type(updates: Sequence[OfferedUpdate]) -> str:
    """The version in the commands to copy; a placeholder if a shell could read it as more."""
    version = updates[0].version if updates else ""
    return version if SHELL_SAFE.fullmatch(version) else "VERSION"


def _web_address(url: object) -> str:
    """A URL that may be a link: never `javascript:`."""
    return url if isinstance(url, str) and url.startswith(("https://", "http://")) else ""
