"""The release: where an update is, what was skipped and why, and which updates there are."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from markupsafe import Markup

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS, FEATURE_GATES, ClusterVersion, FeatureGate
from quarterdeck.api.meta import Key, Object
from quarterdeck.console.account import ConsoleAccount, Selected, Unreadable
from quarterdeck.console.feed import Fragments
from quarterdeck.console.pages.changes import typed
from quarterdeck.console.pages.live import live_routes
from quarterdeck.console.pages.offers import Offers, offered, unaccepted, version_to_type
from quarterdeck.console.pages.overview import VERSION, release_progress
from quarterdeck.console.pages.page import (
    FIELD_MANAGER,
    OPERATORS,
    LivePage,
    form_of,
    navigation_fragment,
    rights,
    see,
)
from quarterdeck.console.pages.progress import AppliedRelease, conditions_in
from quarterdeck.console.picture import drawn, stages_with_state
from quarterdeck.console.render import fragment
from quarterdeck.console.rights import Action
from quarterdeck.console.security import BadForm
from quarterdeck.console.state import CONSOLE, SESSION, Console
from quarterdeck.controller.metadata import fence
from quarterdeck.feature_gates import entry_for
from quarterdeck.payload.filters import excluded_by, included
from quarterdeck.payload.graph import Mode, build_graph
from quarterdeck.payload.model import Payload, PayloadError
from quarterdeck.payload.observed import SELF_MANAGED, ObservedCluster
from quarterdeck.payload.releases import load_release, read_releases

TYPED_VERSION = Selected(resource=CLUSTER_VERSIONS, name="version")
GATES = Selected(resource=FEATURE_GATES, name="cluster")
NO_RELEASES = "Start the console with --releases to see the run levels and what was skipped."


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest that this cluster leaves out."""

    manifest: str
    reason: str


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """The run levels as a picture, and what was left out; or why there is none."""

    svg: str = ""
    skipped: tuple[Skipped, ...] = ()
    why: str = ""


def observed_cluster(version: ClusterVersion | None, gates: FeatureGate | None) -> ObservedCluster:
    """The facts by which manifests are left out. Pure."""
    status = version.status if version else None
    entry = entry_for(gates, status.desired.version if status else "") if gates else None
    facts: dict[str, Any] = {"profile": SELF_MANAGED}
    if gates is not None:
        facts["feature_set"] = gates.spec.effective_feature_set
    if entry is not None:
        facts["enabled_gates"] = frozenset(one.name for one in entry.enabled)
    if version is not None:
        facts["cluster_id"] = version.spec.cluster_id
        facts["overrides"] = version.spec.overrides
    if status is not None and status.capabilities is not None:
        facts["known_capabilities"] = frozenset(status.capabilities.known_capabilities)
        facts["enabled_capabilities"] = frozenset(status.capabilities.enabled_capabilities)
    return ObservedCluster(**facts)


def picture_of(payload: Payload, observed: ObservedCluster, progress: AppliedRelease) -> Picture:
    """The run levels of a payload in a cluster. Pure."""
    graph = build_graph(included(payload.manifests, observed), Mode.UPDATING)
    total = progress.total or len(graph.manifests)
    done = progress.done if progress.updating else total
    skipped = tuple(
        Skipped(manifest=manifest.place, reason=found.reason or found.filter)
        for manifest in payload.manifests
        if (found := excluded_by(manifest, observed)) is not None
    )
    svg = drawn(stages_with_state(graph, done, total, progress.waiting_on))
    return Picture(svg=svg, skipped=skipped)


class ReadPayloads:
    """The payloads of a releases directory, each read once."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._known: dict[str, Payload] = {}

    async def of(self, version: str) -> Payload | str:
        """The payload of a version; text that says why there is none."""
        if self._directory is None:
            return NO_RELEASES
        if version not in self._known:
            found = await asyncio.to_thread(_loaded, self._directory, version)
            if isinstance(found, str):
                return found
            self._known[version] = found
        return self._known[version]


def _loaded(directory: Path, version: str) -> Payload | str:
    offer = read_releases(directory).by_version(version)
    if offer is None:
        return f"The releases directory has no release {version or '(none is known)'}."
    try:
        return load_release(offer, SELF_MANAGED)
    except (PayloadError, OSError) as error:
        return f"The release {version} cannot be read: {error}"


PAYLOADS: web.AppKey[ReadPayloads] = web.AppKey("payloads", ReadPayloads)


def routes() -> list[web.RouteDef]:
    """The routes of the release."""
    return [
        *live_routes("/release", _page),
        web.post("/release", _start),
    ]


async def _page(request: web.Request) -> LivePage:
    console, account = request.app[CONSOLE], request[SESSION].account
    payloads = request.app[PAYLOADS]
    offers = await _offers(console, account)

    async def extra() -> Mapping[str, Any]:
        may = await rights(
            account,
            start=Action(verb="patch", resource=CLUSTER_VERSIONS, name="version"),
        )
        return {"offers": offers, "may": may}

    version = version_to_type(offers.updates)
    return LivePage(
        path="/release",
        title="Release",
        template="release.html",
        selections=(OPERATORS, VERSION, TYPED_VERSION, GATES),
        fragments=lambda: _fragments(console, account, payloads),
        extra=extra,
        kubectl=(
            "kubectl get clusterversion version -o yaml",
            "kubectl patch clusterversion version --type=merge "
            f'-p \'{{"spec":{{"desiredUpdate":{{"version":"{version}"}}}}}}\'',
            f"quarterdeck update {version} --watch",
        ),
    )


async def _offers(console: Console, account: ConsoleAccount) -> Offers:
    live = await _version(account)
    version = await _optional(account, TYPED_VERSION)
    if live is None or version is None:
        return Offers()
    return offered(console.sources.updates(version), live)


async def _version(account: ConsoleAccount) -> Object | None:
    found: Object | None = (await account.objects(VERSION)).get(Key("", "version"))
    return found


async def _fragments(
    console: Console, account: ConsoleAccount, payloads: ReadPayloads
) -> Fragments:
    made = console.templates
    live = await _version(account)
    progress = await release_progress(account)
    picture = Picture(why="This cluster has no ClusterVersion.")
    if progress is not None:
        payload = await payloads.of(progress.wanted)
        if isinstance(payload, str):
            picture = Picture(why=payload)
        else:
            version, gates = [
                await _optional(account, selected) for selected in (TYPED_VERSION, GATES)
            ]
            picture = picture_of(payload, observed_cluster(version, gates), progress)
    status = (live or {}).get("status") or {}
    return {
        "release": fragment(made, "_release.html", progress=progress, link=False),
        "graph": fragment(made, "_graph.html", picture=picture, svg=Markup(picture.svg)),  # noqa: S704 drawn
        "release-conditions": fragment(
            made,
            "_release_conditions.html",
            conditions=list(conditions_in(live or {}).values()),
            history=status.get("history") or [],
        ),
        **(await navigation_fragment(console, account)),
    }


async def _optional(account: ConsoleAccount, selected: Selected) -> Any:
    try:
        return (await account.objects(selected)).get(Key("", selected.name))
    except Unreadable:
        return None


async def _start(request: web.Request) -> web.StreamResponse:
    session, sources = request[SESSION], request.app[CONSOLE].sources
    form = await form_of(request)
    wanted = form.get("version", "")
    client = session.account.client
    live = await client.get(CLUSTER_VERSIONS.plain, "version")
    try:
        view = sources.updates(typed(live, ClusterVersion))
    except msgspec.ValidationError as error:
        raise BadForm(422, f"the ClusterVersion cannot be read: {error}") from None
    offers = offered(view, live)
    update = next((one for one in offers.updates if one.version == wanted), None)
    if update is None:
        raise BadForm(400, "this version is not among the updates of this cluster")
    if form.get("sure") != "yes":
        raise BadForm(400, "confirm that the cluster is to be updated")
    if missing := unaccepted(update, form):
        raise BadForm(
            400,
            f"{wanted} is not recommended for this cluster; to update to it all the same, accept "
            f"its risks: {', '.join(missing)}",
        )
    # With the version that was read: what is started is what was offered.
    patch = {"metadata": fence(live), **sources.update_patch(wanted)}
    await client.patch(CLUSTER_VERSIONS.plain, "version", patch, field_manager=FIELD_MANAGER)
    risks = ", ".join(risk.name for risk in update.risks)
    session.say(
        f"The update to {wanted} is requested{f', with its risks: {risks}' if risks else ''}. "
        "This page follows it."
    )
    return see("/release")
