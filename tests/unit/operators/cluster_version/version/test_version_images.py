"""Updates by image and by the update service: wanted, accepted, refused and written down."""

import asyncio
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from tests.unit.operators.cluster_version.version.builders import START, entry, offer, releases
from tests.unit.update_graph.graphs import ALWAYS, conditional, graph, risk

from quarterdeck.api.config_v1 import (
    ClusterStatusCondition,
    ClusterVersionStatus,
    Release,
    Update,
    UpdateHistory,
)
from quarterdeck.backoff import Retries
from quarterdeck.operators.cluster_version.history import History
from quarterdeck.operators.cluster_version.retrieval.graphs import GraphNews
from quarterdeck.operators.cluster_version.retrieval.images import (
    RETRY,
    ImageRetriever,
    NotFetched,
    WantedImage,
)
from quarterdeck.operators.cluster_version.settings import Settings
from quarterdeck.operators.cluster_version.version.decide import first_offer
from quarterdeck.operators.cluster_version.version.updates import (
    ImageNews,
    Move,
    Stay,
    UpdateRefused,
    UpdateRequest,
    UpdateService,
    judge,
    wanted_image,
)
from quarterdeck.operators.cluster_version.version.wanted import (
    needed_digests,
    retrieved_text,
    shown_updates,
    update_service,
    wanted_images,
)
from quarterdeck.payload.releases import Offer, Releases
from quarterdeck.update_graph.model import parse_graph
from quarterdeck.update_graph.retrieve import GraphNotRetrieved, GraphQuery
from quarterdeck.update_graph.updates import OfferedUpdates, offered_updates

A, B = ("sha256:" + letter * 64 for letter in "ab")
IMAGE, TAG = f"r.test/q@{A}", "r.test/q:stable"
LOCAL = releases(offer("1.0.0"))
SETTLED: History = (entry("1.0.0"),)


def fetched(version: str, digest: str = A, *previous: str, verified_by: str = "") -> Offer:
    return msgspec.structs.replace(
        offer(version, *previous),
        release=Release(version=version, image=f"r.test/q@{digest}"),
        digest=digest,
        verified_by=verified_by,
    )


def with_fetched(*offers: Offer) -> Releases:
    return msgspec.structs.replace(LOCAL, fetched=offers)


def asked(update: Update | None, known: Releases = LOCAL, **more: Any) -> UpdateRequest:
    return UpdateRequest(update=update, releases=known, **{"history": SETTLED} | more)


def refused(request: UpdateRequest) -> UpdateRefused:
    outcome = judge(request)
    assert isinstance(outcome, UpdateRefused), outcome
    assert outcome.remedy
    return outcome


def moved(request: UpdateRequest) -> Move:
    outcome = judge(request)
    assert isinstance(outcome, Move), outcome
    return outcome


def ran(image: str, version: str = "1.1.0") -> UpdateHistory:
    return msgspec.structs.replace(entry(version, minutes=1), image=image)


def service(*edges: tuple[int, int], risks: list[Any] | None = None) -> UpdateService:
    found = parse_graph(graph(("1.0.0", "1.1.0", "1.2.0"), *edges, conditional=risks))
    return UpdateService(channel="stable", offered=offered_updates(found, ("1.0.0",), START))


def test_an_image_that_is_not_there_is_wanted_and_waited_for() -> None:
    request = asked(Update(image=IMAGE))
    assert wanted_images(request) == (WantedImage(image=IMAGE),)
    found = refused(request)
    assert (found.pending, found.reason) == (True, "RetrievingPayload")


def test_why_an_image_cannot_be_fetched_is_told_with_its_remedy() -> None:
    failure = NotFetched(reason="NotAuthorized", message="status 401", remedy="log in")
    request = asked(Update(image=IMAGE), images=ImageNews(failures={IMAGE: failure}))
    found = refused(request)
    assert (found.pending, found.reason) == (False, "NotAuthorized")
    assert str(found) == (
        f"spec.desiredUpdate.image: '{IMAGE}': the release cannot be retrieved, and nothing of it"
        " is applied: status 401; log in; it is tried again by itself"
    )
    assert wanted_images(request) == (WantedImage(image=IMAGE),)


def test_an_image_without_a_registry_is_one_of_the_directory() -> None:
    request = asked(Update(image="quarterdeck:9.9.9"))
    assert wanted_images(request) == ()
    assert refused(request).reason == "ReleaseNotFound"


def test_a_fetched_release_is_moved_to_and_written_down_by_its_digest() -> None:
    found = moved(asked(Update(image=IMAGE), with_fetched(fetched("1.1.0", A, "1.0.0"))))
    assert (found.image, found.verified) == (IMAGE, False)


def test_a_tag_is_written_down_with_the_digest_that_it_had() -> None:
    known = with_fetched(fetched("1.1.0", A, "1.0.0"))
    request = asked(Update(image=TAG), known, images=ImageNews(resolved={TAG: A}))
    assert moved(request).image == f"{TAG}@{A}"
    assert wanted_images(request) == ()
    assert A in needed_digests(request)
    # Not resolved yet, after a restart: the fetch resolves it.
    assert wanted_images(asked(Update(image=TAG), known)) == (WantedImage(image=TAG),)


@pytest.mark.parametrize(
    "update",
    [
        Update(image=TAG),
        Update(image=f"{TAG}@{A}"),
        Update(image=IMAGE),
        Update(version="1.1.0"),
        Update(version="1.1.0", image=TAG),
        None,
    ],
)
def test_what_a_tag_meant_when_the_update_began_stays(update: Update | None) -> None:
    """The tag means another image now; nothing moves, and nothing is asked."""
    history = (ran(f"{TAG}@{A}"), *SETTLED)
    known = with_fetched(fetched("1.1.0", A), fetched("1.2.0", B, "1.1.0"))
    request = asked(update, known, history=history)
    assert judge(request) == Stay()
    assert wanted_images(request) == ()


def test_the_release_that_runs_is_fetched_again_if_it_is_lost() -> None:
    history = (ran(IMAGE), *SETTLED)
    assert wanted_images(asked(None, history=history)) == (WantedImage(image=IMAGE, force=True),)
    assert needed_digests(asked(None, history=history)) == {A}


def test_a_version_that_ran_before_is_fetched_by_its_image() -> None:
    history = (entry("1.2.0", "Partial", 2), ran(IMAGE), *SETTLED)
    request = asked(Update(version="1.1.0"), history=history)
    assert WantedImage(image=IMAGE) in wanted_images(request)


def test_another_image_of_the_running_version_is_refused() -> None:
    history = (ran(f"r.test/q@{B}"), *SETTLED)
    known = with_fetched(fetched("1.1.0", A), fetched("1.1.0", B))
    found = refused(asked(Update(image=IMAGE), known, history=history))
    assert found.reason == "SameVersion"
    assert "build the release under another version" in found.remedy


def test_an_image_with_another_version_than_the_request_is_refused() -> None:
    known = with_fetched(fetched("6.6.6", A, "1.0.0"))
    found = refused(asked(Update(version="1.1.0", image=IMAGE), known))
    assert (found.reason, found.value) == ("VersionMismatch", "1.1.0")
    assert "6.6.6" in found.message


def test_an_image_lists_its_previous_versions_itself_without_a_service() -> None:
    found = refused(asked(Update(image=IMAGE), with_fetched(fetched("1.1.0"))))
    assert found.reason == "NotReachable"


def test_with_a_key_only_what_it_verified_is_moved_to() -> None:
    unverified = with_fetched(fetched("1.1.0", A, "1.0.0"))
    verified = with_fetched(fetched("1.1.0", A, "1.0.0", verified_by="key"))
    images = ImageNews(key="key")
    request = asked(Update(image=IMAGE), unverified, images=images)
    assert refused(request).pending
    assert wanted_images(request) == (WantedImage(image=IMAGE),)
    assert moved(asked(Update(image=IMAGE), verified, images=images)).verified
    other = ImageNews(key="another key")
    assert isinstance(judge(asked(Update(image=IMAGE), verified, images=other)), UpdateRefused)
    failure = NotFetched(reason="ReleaseNotVerified", message="no signature", remedy="sign it")
    told = ImageNews(key="key", failures={IMAGE: failure})
    assert refused(asked(Update(image=IMAGE), unverified, images=told)).reason == (
        "ReleaseNotVerified"
    )
    # Forced, and the history says so.
    forced = asked(Update(image=IMAGE, force=True), unverified, images=images)
    assert wanted_images(forced) == ()
    assert "no signature of the verification key" in moved(forced).risks
    assert not moved(forced).verified


def test_without_a_key_nothing_counts_as_verified() -> None:
    known = with_fetched(fetched("1.1.0", A, "1.0.0", verified_by="key"))
    assert not moved(asked(Update(image=IMAGE), known)).verified


def test_the_edges_of_the_service_decide_and_not_the_lists() -> None:
    image = service((0, 1)).offered.available[0].image  # type: ignore[union-attr]
    digest = image.partition("@")[2]
    known = with_fetched(fetched("1.1.0", digest))
    assert moved(asked(Update(version="1.1.0"), known, service=service((0, 1)))).offer.digest
    found = refused(asked(Update(version="1.2.0"), known, service=service((0, 1), (1, 2))))
    assert found.reason == "NotReachable"
    assert found.message == "the update service's channel 'stable' has no update from 1.0.0 to it"
    assert found.remedy == "move to 1.1.0 instead"
    listed = releases(offer("1.2.0", "1.0.0"), offer("1.0.0"))
    found = refused(asked(Update(version="1.2.0"), listed, service=service((0, 1))))
    assert found.reason == "NotReachable"


def test_the_image_of_the_service_is_wanted() -> None:
    offered = service((0, 1))
    (wanted,) = wanted_images(asked(Update(version="1.1.0"), service=offered))
    assert wanted.image == offered.offered.available[0].image  # type: ignore[union-attr]


def test_an_image_that_the_service_does_not_know_is_refused() -> None:
    known = with_fetched(fetched("1.1.0", A, "1.0.0"))
    found = refused(asked(Update(image=IMAGE), known, service=service((0, 1))))
    assert found.reason == "ImageMismatch"


def test_an_update_with_risks_is_accepted_and_they_are_written_down() -> None:
    offered = service(risks=[conditional("1.0.0", "1.1.0", risk("Leak", ALWAYS))])
    image = offered.offered.conditional[0].release.image  # type: ignore[union-attr]
    known = with_fetched(fetched("1.1.0", image.partition("@")[2]))
    found = moved(asked(Update(version="1.1.0"), known, service=offered))
    assert "not recommended: It leaks." in found.risks


def test_while_the_service_is_asked_an_update_waits() -> None:
    waiting = refused(asked(Update(version="1.1.0"), service=UpdateService(channel="stable")))
    assert (waiting.pending, waiting.reason) == (True, "UpdatesNotRetrieved")
    failing = UpdateService(channel="stable", fault="status 500; mend it")
    told = refused(asked(Update(version="1.1.0"), service=failing))
    assert not told.pending
    assert "status 500; mend it" in told.message


QUERY = GraphQuery(
    upstream="https://u.test/graph", channel="stable", version="1.0.0", cluster_id=""
)
GRAPH = parse_graph(graph(("1.0.0", "1.1.0"), (0, 1)))
AWAY = GraphNotRetrieved("RemoteFailed", "no answer", "check it")
ANSWERED = datetime(2026, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=1)))


def status(*said: ClusterStatusCondition) -> ClusterVersionStatus:
    return ClusterVersionStatus(
        desired=Release(version="1.0.0", image=""),
        history=SETTLED,
        observed_generation=1,
        version_hash="",
        conditions=said,
        available_updates=(Release(version="1.0.9", image=""),),
    )


@pytest.mark.parametrize(
    ("query", "news", "expected"),
    [
        pytest.param(None, GraphNews(), ("True", "ReleasesDirectory", "not set"), id="no service"),
        pytest.param(
            QUERY, GraphNews(query=QUERY), ("Unknown", "Retrieving", "being asked"), id="asked"
        ),
        pytest.param(
            QUERY,
            GraphNews(query=QUERY, graph=GRAPH),
            ("True", "AsExpected", "The channel stable"),
            id="read",
        ),
        pytest.param(
            QUERY,
            GraphNews(query=QUERY, failed=AWAY),
            ("False", "RemoteFailed", "no answer; check it"),
            id="away",
        ),
        pytest.param(
            QUERY,
            GraphNews(query=QUERY, graph=GRAPH, answered=ANSWERED, failed=AWAY),
            (
                "False",
                "RemoteFailed",
                "no answer; check it; it last answered at 2026-02-03T03:05:06Z",
            ),
            id="away after an answer",
        ),
        pytest.param(
            QUERY,
            GraphNews(query=QUERY, graph=parse_graph(graph(("2.0.0",)))),
            ("False", "VersionNotFound", "does not have 1.0.0"),
            id="another graph",
        ),
    ],
)
def test_what_retrieved_updates_says(
    query: GraphQuery | None, news: GraphNews, expected: tuple[str, str, str]
) -> None:
    said = retrieved_text(query, news, status())
    assert said[:2] == expected[:2]
    assert expected[2] in said[2]


def test_after_a_restart_nothing_is_said_anew_until_there_is_an_answer() -> None:
    before = ClusterStatusCondition(
        type="RetrievedUpdates",
        status="True",
        reason="AsExpected",
        message="read",
        last_transition_time=START,
    )
    asking = GraphNews(query=QUERY)
    said = retrieved_text(QUERY, asking, status(before))
    assert said == ("True", "AsExpected", "read")
    offered = update_service(QUERY, asking, status(before), START)
    assert offered is not None
    assert [one.version for one in shown_updates(offered, status(before), said).available] == [
        "1.0.9"
    ]


def test_the_updates_of_a_directory_are_not_those_of_a_service() -> None:
    asking = GraphNews(query=QUERY)
    offered = update_service(QUERY, asking, status(), START)
    assert offered is not None
    said = retrieved_text(QUERY, asking, status())
    assert shown_updates(offered, status(), said) == OfferedUpdates()
    answered = update_service(
        QUERY, GraphNews(query=QUERY, graph=GRAPH), status(), START + timedelta(1)
    )
    assert answered is not None
    assert [one.version for one in shown_updates(answered, status(), said).available] == ["1.1.0"]


def turning_back(known: Releases, key: str = "key", *, force: bool = False) -> UpdateRequest:
    """An update to 1.1.5 has begun, and 1.1.0, which ran from an image, is asked for again."""
    history = (entry("1.1.5", "Partial", 2), ran(IMAGE))
    update = Update(version="1.1.0", force=force)
    return asked(update, known, history=history, images=ImageNews(key=key))


def test_with_a_key_an_unverified_release_is_verified_before_it_is_turned_back_to() -> None:
    """The operator's own release, or one that was fetched before there was a key."""
    request = turning_back(with_fetched(fetched("1.1.0")))
    assert wanted_images(request) == (WantedImage(image=IMAGE),)
    assert refused(request).pending
    failure = NotFetched(reason="ReleaseNotVerified", message="no signature", remedy="sign it")
    told = msgspec.structs.replace(request, images=ImageNews(key="key", failures={IMAGE: failure}))
    assert refused(told).reason == "ReleaseNotVerified"
    verified = turning_back(with_fetched(fetched("1.1.0", verified_by="key")))
    assert wanted_images(verified) == ()
    assert moved(verified).verified
    for settled in (
        turning_back(with_fetched(fetched("1.1.0")), key=""),
        turning_back(with_fetched(fetched("1.1.0")), force=True),
    ):
        assert wanted_images(settled) == ()
        assert moved(settled).offer.digest == A


def test_another_image_of_the_version_before_is_no_way_back() -> None:
    request = turning_back(with_fetched(fetched("1.1.0", B)), key="")
    found = refused(request)
    assert found.reason == "NotReachable"
    assert request.way_back == ""
    assert turning_back(with_fetched(fetched("1.1.0", A)), key="").way_back == "1.1.0"
    offered = msgspec.structs.replace(request, service=service((0, 1)))
    assert isinstance(judge(offered), UpdateRefused)


def test_a_tag_in_a_graph_stays_resolved() -> None:
    found = msgspec.json.decode(graph(("1.0.0", "1.1.0"), (0, 1)))
    found["nodes"][1]["payload"] = TAG
    offered = offered_updates(parse_graph(msgspec.json.encode(found)), ("1.0.0",), START)
    tagged = UpdateService(channel="stable", offered=offered)
    request = asked(Update(version="1.1.0"), service=tagged)
    assert wanted_image(request) == TAG
    retriever = ImageRetriever(Settings(release_version="1.0.0"), lambda: None)
    retriever.resolved[TAG] = A
    retriever.want(wanted_images(request), wanted_image(request), needed_digests(request))
    assert retriever.resolved == {TAG: A}
    retriever.want((), "", ())
    assert retriever.resolved == {}


async def test_a_fetch_of_no_use_is_repeated_with_a_back_off() -> None:
    retriever = ImageRetriever(Settings(release_version="1.0.0"), lambda: None)
    wanted = WantedImage(image=IMAGE)
    assert retriever._pause(wanted) == 0
    now = asyncio.get_running_loop().time()
    retriever._fetched[wanted] = (now, Retries(RETRY, dice=lambda: 0.0))
    assert [retriever._pause(wanted) for _ in range(3)] == [3, 6, 12]
    assert retriever._pause(WantedImage(image=TAG)) == 0
    retriever._fetched[wanted] = (now - 2 * RETRY.limit - 1, Retries(RETRY))
    assert retriever._pause(wanted) == 0


def test_the_first_release_is_that_of_the_operators_image() -> None:
    """It is fetched if it is not there; a version of the same name in the directory is no help."""
    new = asked(None, LOCAL, history=(), first_image=IMAGE)
    assert wanted_images(new, "9.9.9") == (WantedImage(image=IMAGE),)
    assert first_offer(new, "9.9.9") is None
    there = asked(None, with_fetched(fetched("1.1.0", A)), history=(), first_image=IMAGE)
    assert wanted_images(there, "1.0.0") == ()
    found = first_offer(there, "1.0.0")
    assert found is not None
    assert found.release.version == "1.1.0"
    tagged = asked(
        None,
        with_fetched(fetched("1.1.0", A)),
        history=(),
        first_image=TAG,
        images=ImageNews(resolved={TAG: A}),
    )
    assert wanted_images(tagged, "9.9.9") == ()


def test_without_a_registry_the_first_release_is_that_of_the_version() -> None:
    new = asked(None, LOCAL, history=(), first_image="quarterdeck:1.0.0")
    assert wanted_images(new, "9.9.9") == ()
    found = first_offer(new, "1.0.0")
    assert found is not None
    assert found.release.version == "1.0.0"
