"""Which images and which graph the operator needs from outside of the cluster. Pure."""

from collections.abc import Iterator
from datetime import UTC, datetime

from quarterdeck.api.config_v1 import ClusterVersion, ClusterVersionStatus
from quarterdeck.operators.cluster_version.history import latest_completed, maybe_running
from quarterdeck.operators.cluster_version.retrieval.graphs import GraphNews
from quarterdeck.operators.cluster_version.retrieval.images import WantedImage
from quarterdeck.operators.cluster_version.version.decide import current_offer, first_offer
from quarterdeck.operators.cluster_version.version.updates import (
    UpdateRequest,
    UpdateService,
    is_trusted,
    is_under_way,
    offer_of_image,
    requested_offer,
    wanted_image,
)
from quarterdeck.registry.reference import digest_of, has_registry
from quarterdeck.update_graph.retrieve import GraphQuery
from quarterdeck.update_graph.updates import OfferedUpdates, offered_updates

RetrievedText = tuple[str, str, str]
"""Status, reason and message of the condition RetrievedUpdates."""


def wanted_images(asked: UpdateRequest, first: str = "") -> tuple[WantedImage, ...]:
    """The images to fetch: of the release that runs, if it is lost, and of the requested one.

    In a cluster without history: of the first release, whose version may be `first`.
    """
    return tuple(dict.fromkeys(_wanted(asked, first)))


def _wanted(asked: UpdateRequest, first: str) -> Iterator[WantedImage]:
    if not asked.history:
        if has_registry(asked.first_image) and first_offer(asked, first) is None:
            yield WantedImage(image=asked.first_image)
        return
    newest = asked.history[0].image
    if digest_of(newest) and current_offer(asked) is None:
        # It was accepted before, verified or not.
        yield WantedImage(image=newest, force=True)
    image = wanted_image(asked)
    if not has_registry(image) or is_under_way(asked, requested_offer(asked)):
        return
    offer = offer_of_image(image, asked)
    force = bool(asked.update and asked.update.force)
    if offer is None or not (is_trusted(offer, asked) or force):
        yield WantedImage(image=image, force=force)


def needed_digests(asked: UpdateRequest) -> frozenset[str]:
    """The digests of the releases that must stay: running, completed last, and requested."""
    images = [entry.image for entry in asked.history[:1]]
    if (done := latest_completed(asked.history)) is not None:
        images.append(done.image)
    requested = wanted_image(asked)
    images += [requested, f"@{asked.images.resolved.get(requested, '')}"]
    return frozenset(filter(None, map(digest_of, images)))


def graph_query(version: ClusterVersion) -> GraphQuery | None:
    """What to ask the update service; None without one, or while nothing runs."""
    history = version.status.history if version.status else ()
    if not version.spec.upstream or not history:
        return None
    return GraphQuery(
        upstream=version.spec.upstream,
        channel=version.spec.channel or "",
        version=history[0].version or "",
        cluster_id=version.spec.cluster_id,
    )


def update_service(
    query: GraphQuery | None, news: GraphNews, was: ClusterVersionStatus | None, now: datetime
) -> UpdateService | None:
    """What the update service offers now; None without one."""
    if query is None:
        return None
    offered = None
    if news.graph is not None and was is not None:
        running = maybe_running(was.history)
        offered = offered_updates(news.graph, running, now, was.conditional_updates)
    fault = str(news.failed) if news.failed is not None else ""
    return UpdateService(channel=query.channel, offered=offered, fault=fault)


def retrieved_text(
    query: GraphQuery | None, news: GraphNews, was: ClusterVersionStatus | None
) -> RetrievedText:
    """What RetrievedUpdates says."""
    if query is None:
        message = "The updates are those of the releases directory: spec.upstream is not set"
        return "True", "ReleasesDirectory", message
    if news.failed is not None:
        return "False", news.failed.reason, f"{news.failed}{_last_answer(news)}"
    if news.graph is None or news.query != query:
        before = [c for c in (was.conditions if was else ()) if c.type == "RetrievedUpdates"]
        # What was said stands until there is an answer, so that a restart writes nothing.
        if before and before[0].reason != "ReleasesDirectory":
            return before[0].status, before[0].reason, before[0].message
        return "Unknown", "Retrieving", f"The update service is being asked: {query.upstream}"
    lacking = [v for v in maybe_running(was.history if was else ()) if v not in news.graph.nodes]
    if lacking:
        return (
            "False",
            "VersionNotFound",
            f"the channel {query.channel!r} does not have {' and '.join(lacking)}, which runs; set"
            " a spec.channel that has it",
        )
    return "True", "AsExpected", f"The channel {query.channel} of {query.upstream} was read"


def _last_answer(news: GraphNews) -> str:
    """When a service that fails answered last. It is constant while the service fails."""
    if news.answered is None:
        return ""
    last = news.answered.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"; it last answered at {last}, and the updates shown are those that it offered then"


def shown_updates(
    service: UpdateService, was: ClusterVersionStatus | None, said: RetrievedText
) -> OfferedUpdates:
    """The updates to show: those that the service offers; those before while it is first asked."""
    if service.offered is not None:
        return service.offered
    if was is None or service.fault or said[1] == "Retrieving":
        return OfferedUpdates()
    return OfferedUpdates(
        available=was.available_updates or (), conditional=was.conditional_updates
    )
