"""Which updates are accepted, and what is said of those that are not."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operators.cluster_version.version.builders import (
    START,
    entry,
    offer,
    operator,
    releases,
)
from tests.unit.update_graph.graphs import ALWAYS, conditional, graph, risk

from quarterdeck.api.config_v1 import ComponentOverride, Update
from quarterdeck.operators.cluster_version.history import (
    History,
    latest_completed,
    maybe_running,
)
from quarterdeck.operators.cluster_version.version.blockers import Blocker, blockers, summary
from quarterdeck.operators.cluster_version.version.updates import (
    Move,
    Stay,
    UpdateRefused,
    UpdateRequest,
    UpdateService,
    judge,
)
from quarterdeck.payload.model import PayloadProblem
from quarterdeck.payload.releases import Releases
from quarterdeck.status.staleness_marks import checking_message, verdict_message
from quarterdeck.update_graph.model import parse_graph
from quarterdeck.update_graph.updates import offered_updates

KNOWN = releases(
    offer("2.0.0", "1.1.0"),
    offer("1.1.0", "1.0.0", "1.0.1"),
    offer("1.0.1", "1.0.0", "1.1.0"),
    offer("1.0.0"),
)
SETTLED: History = (entry("1.0.0"),)
UPDATING: History = (entry("1.1.0", "Partial", 1), entry("1.0.0"))
BLOCKER = Blocker(reason="ClusterOperatorNotUpgradeable", message="ingress says no")


def judged(
    update: Update | None,
    history: History = SETTLED,
    known: Releases = KNOWN,
    *blocking: Blocker,
) -> Stay | Move | UpdateRefused:
    return judge(UpdateRequest(update=update, history=history, releases=known, blockers=blocking))


def moved_to(outcome: Stay | Move | UpdateRefused) -> str:
    assert isinstance(outcome, Move), outcome
    return outcome.offer.release.version


def refused(outcome: Stay | Move | UpdateRefused) -> UpdateRefused:
    assert isinstance(outcome, UpdateRefused), outcome
    return outcome


def test_a_listed_release_is_moved_to_by_version_or_by_image() -> None:
    assert moved_to(judged(Update(version="1.1.0"))) == "1.1.0"
    assert moved_to(judged(Update(image="quarterdeck:1.1.0"))) == "1.1.0"
    assert moved_to(judged(Update(version="1.1.0", image="quarterdeck:1.1.0"))) == "1.1.0"


@pytest.mark.parametrize(
    "update",
    [
        pytest.param(None, id="nothing asked"),
        pytest.param(Update(version="1.0.0"), id="the version that runs"),
        pytest.param(Update(image="quarterdeck:1.0.0"), id="the image that runs"),
        pytest.param(Update(version="1.0.0", image="quarterdeck:1.0.0"), id="both"),
    ],
)
def test_what_runs_already_stays(update: Update | None) -> None:
    assert judged(update) == Stay()
    assert judged(update, known=Releases()) == Stay() or (update and update.image)


def test_an_update_that_has_begun_is_not_judged_again() -> None:
    """Neither a blocker nor the field's removal stops it."""
    assert judged(Update(version="1.1.0"), UPDATING, KNOWN, BLOCKER) == Stay()
    assert judged(None, UPDATING, KNOWN, BLOCKER) == Stay()


def test_before_the_first_release_nothing_is_judged() -> None:
    assert judged(Update(version="9.9.9"), ()) == Stay()


@pytest.mark.parametrize(
    ("update", "field", "reason", "told"),
    [
        pytest.param(
            Update(version="2.0.0"),
            "spec.desiredUpdate.version",
            "NotReachable",
            "it cannot be reached from 1.0.0; it lists as previous: 1.1.0;"
            " move to 1.1.0 or 1.0.1 instead",
            id="a move up that is not listed",
        ),
        pytest.param(
            Update(version="3.0.0"),
            "spec.desiredUpdate.version",
            "ReleaseNotFound",
            "there is no such release in the releases directory; "
            "choose one of: 2.0.0, 1.1.0, 1.0.1, 1.0.0",
            id="an unknown version",
        ),
        pytest.param(
            Update(image="other:1"),
            "spec.desiredUpdate.image",
            "ReleaseNotFound",
            "choose one of: quarterdeck:2.0.0, quarterdeck:1.1.0",
            id="an unknown image",
        ),
        pytest.param(
            Update(version="1.1.0", image="other:1"),
            "spec.desiredUpdate.image",
            "ImageMismatch",
            "release 1.1.0 has the image quarterdeck:1.1.0; set one of version and image only",
            id="image and version of different releases",
        ),
        pytest.param(
            Update(version="1.0.0", image="other:1"),
            "spec.desiredUpdate.image",
            "ImageMismatch",
            "release 1.0.0 has the image quarterdeck:1.0.0",
            id="the running version with another image",
        ),
        pytest.param(
            Update(), "spec.desiredUpdate", "NoRelease", "it names no release", id="empty"
        ),
        pytest.param(
            Update(version="1.1.0", architecture="Multi"),
            "spec.desiredUpdate.architecture",
            "UnknownArchitecture",
            "remove the field",
            id="several architectures",
        ),
    ],
)
@pytest.mark.parametrize("force", [None, True])
def test_a_refusal_says_field_value_and_remedy_and_force_does_not_help(
    update: Update, field: str, reason: str, told: str, force: bool | None
) -> None:
    outcome = refused(judged(msgspec.structs.replace(update, force=force)))
    assert (outcome.field, outcome.reason) == (field, reason)
    assert told in str(outcome)
    assert str(outcome).startswith(f"{field}: {outcome.value!r}: ")


def test_without_a_directory_of_releases_the_remedy_is_an_image_or_a_service() -> None:
    """As in a cluster whose releases come from a registry: there is no directory to add it to."""
    assert str(refused(judged(Update(version="3.0.0"), known=Releases()))) == (
        "spec.desiredUpdate.version: '3.0.0': there is no such release; name its image in "
        "spec.desiredUpdate.image, or an update service in spec.upstream"
    )


def test_a_move_down_needs_to_be_listed_too() -> None:
    at_1_1: History = (entry("1.1.0", minutes=1), entry("1.0.0"))
    assert moved_to(judged(Update(version="1.0.1"), at_1_1)) == "1.0.1"
    outcome = refused(judged(Update(version="1.0.0"), at_1_1))
    assert "it cannot be reached from 1.1.0; it lists as previous: none" in str(outcome)


def test_a_change_in_the_middle_of_an_update_must_list_all_that_may_run() -> None:
    assert moved_to(judged(Update(version="1.0.1"), UPDATING)) == "1.0.1"
    outcome = refused(judged(Update(version="2.0.0"), UPDATING))
    assert (
        "it cannot be reached from 1.0.0, of which parts run until the update to 1.1.0 is complete"
        in str(outcome)
    )
    # Back to where it came from: only what was begun since needs to be listed.
    back = releases(offer("1.1.0", "1.0.0"), offer("1.0.0", "1.1.0"))
    assert moved_to(judged(Update(version="1.0.0"), UPDATING, back)) == "1.0.0"
    refused(judged(Update(version="1.0.0"), UPDATING))


def test_a_blocker_blocks_a_minor_update_and_says_what_blocks() -> None:
    outcome = refused(judged(Update(version="1.1.0"), SETTLED, KNOWN, BLOCKER))
    assert outcome.reason == "UpgradeableFalse"
    assert "a minor update from 1.0.0 is blocked: ingress says no;" in str(outcome)


def test_a_patch_update_goes_with_a_warning_that_is_kept() -> None:
    outcome = judged(Update(version="1.0.1"), SETTLED, KNOWN, BLOCKER)
    assert moved_to(outcome) == "1.0.1"
    assert isinstance(outcome, Move)
    assert outcome.risks == "ingress says no"


def test_force_moves_although_something_blocks_and_keeps_what_was_overridden() -> None:
    outcome = judged(Update(version="1.1.0", force=True), SETTLED, KNOWN, BLOCKER)
    assert isinstance(outcome, Move)
    assert outcome.risks == "ingress says no"


def test_a_blocker_does_not_hold_a_listed_move_down() -> None:
    at_1_1: History = (entry("1.1.0", minutes=1), entry("1.0.0"))
    assert moved_to(judged(Update(version="1.0.1"), at_1_1, KNOWN, BLOCKER)) == "1.0.1"


def test_a_version_that_is_not_understood_counts_as_a_minor_update() -> None:
    odd: History = (entry("nightly"),)
    known = releases(offer("1.1.0", "nightly"))
    assert moved_to(judged(Update(version="1.1.0"), odd, known)) == "1.1.0"
    refused(judged(Update(version="1.1.0"), odd, known, BLOCKER))


def test_an_unknown_release_may_be_one_that_could_not_be_read() -> None:
    broken = PayloadProblem(
        file="3/release-metadata", line=1, message="not YAML", remedy="correct it"
    )
    outcome = refused(judged(Update(version="3.0.0"), known=Releases(problems=(broken,))))
    assert "3/release-metadata:1: not YAML; correct it" in str(outcome)


def test_an_unknown_release_is_told_with_the_directory_and_the_option() -> None:
    known = Releases(offers=(offer("1.0.0"),), directory="/releases")
    outcome = str(refused(judged(Update(version="3.0.0"), known=known)))
    assert "there is no such release in /releases (--releases); choose one of: 1.0.0" in outcome
    none = Releases(directory="/releases")
    outcome = str(refused(judged(Update(version="3.0.0"), known=none)))
    assert "add it to /releases (--releases)" in outcome


OVERRIDE = ComponentOverride(
    kind="Deployment", group="apps", namespace="ns", name="router", unmanaged=True
)


def test_what_blocks_is_found_in_operators_overrides_and_the_feature_set() -> None:
    stale = verdict_message("all is well", "True", 1200)
    found = blockers(
        [
            operator("z-odd", upgradeable="Unknown", message="nobody knows"),
            operator("storage", upgradeable="Unknown", message=stale),
            operator("ingress", upgradeable="False", reason="OldRoutes", message="remove them"),
            operator("dns", upgradeable="False", reason="Busy"),
            operator("fine"),
        ],
        [OVERRIDE],
        "TechPreviewNoUpgrade",
    )
    assert [one.reason for one in found] == [
        "FeatureSetNotUpgradeable",
        "ClusterVersionOverridesSet",
        "ClusterOperatorNotUpgradeable",
        "ClusterOperatorNotUpgradeable",
        "ClusterOperatorStale",
    ]
    told = summary(found)
    assert told.reason == "MultipleReasons"
    assert "* spec.overrides has Deployment.apps ns/router unmanaged" in told.message
    assert "* the cluster operator dns is not upgradeable: Busy" in told.message
    assert "* the cluster operator ingress is not upgradeable: remove them" in told.message
    assert "* the cluster operator storage no longer reports" in told.message


@pytest.mark.parametrize("feature_set", ["", "OKD", "Default"])
def test_nothing_blocks_where_all_is_well(feature_set: str) -> None:
    managed = ComponentOverride(
        kind="ConfigMap", group="", namespace="ns", name="x", unmanaged=False
    )
    assert blockers([operator("fine")], [managed], feature_set) == ()


@pytest.mark.parametrize("feature_set", ["CustomNoUpgrade", "DevPreviewNoUpgrade"])
def test_each_feature_set_without_upgrades_blocks(feature_set: str) -> None:
    (found,) = blockers([], [], feature_set)
    assert feature_set in found.message


def test_an_override_with_a_stray_namespace_blocks_as_it_excludes() -> None:
    """The manifest filter ignores the namespace of a kind that has none, and so does this."""
    kind, group = "CustomResourceDefinition", "apiextensions.k8s.io"
    stray = ComponentOverride(kind=kind, group=group, namespace="stray", name="x", unmanaged=True)
    assert [one.reason for one in blockers([], [stray], "")] == ["ClusterVersionOverridesSet"]


def test_a_mere_challenge_changes_nothing() -> None:
    asked = operator("dns", upgradeable="False", message=checking_message("too old"))
    (found,) = blockers([asked], [], "")
    assert found.message == "the cluster operator dns is not upgradeable: too old"
    assert blockers([operator("dns", message=checking_message("fine"))], [], "") == ()


all_versions = st.sampled_from(["1.0.0", "1.0.1", "1.1.0", "2.0.0"])


@given(
    st.lists(st.tuples(all_versions, st.sampled_from(["Completed", "Partial"])), min_size=1),
    all_versions,
    st.booleans(),
    st.booleans(),
)
def test_whatever_the_history_a_move_is_listed_and_a_minor_one_is_never_blocked(
    taken: list[tuple[str, str]], wanted: str, blocked: bool, force: bool
) -> None:
    history = tuple(entry(version, state) for version, state in taken)
    blocking = (BLOCKER,) if blocked else ()
    outcome = judged(Update(version=wanted, force=force), history, KNOWN, *blocking)
    asked = UpdateRequest(update=None, history=history, releases=KNOWN)
    match outcome:
        case Stay():
            assert wanted == history[0].version
        case Move(offer=chosen, risks=risks):
            assert chosen.release.version == wanted
            is_listed = chosen.previous.issuperset(set(asked.running) - {wanted})
            lines = {version.rpartition(".")[0] for version in asked.running}
            done = latest_completed(history)
            turns_back = done is not None and done.version == wanted and len(lines) == 1
            assert is_listed or turns_back
            newest = KNOWN.by_version(asked.running[0])
            assert newest is not None
            assert force or not blocked or chosen.version.line <= newest.version.line
            assert bool(risks) == blocked
        case UpdateRefused():
            assert outcome.remedy


versions_with_previous = st.dictionaries(
    all_versions, st.frozensets(all_versions), min_size=1, max_size=4
)


@given(
    st.lists(st.tuples(all_versions, st.sampled_from(["Completed", "Partial"])), min_size=1),
    versions_with_previous,
)
def test_the_updates_of_a_directory_that_are_listed_are_the_higher_ones_that_are_accepted(
    taken: list[tuple[str, str]], previous: dict[str, frozenset[str]]
) -> None:
    """Lower versions and the way back are accepted too, and not listed."""
    history = tuple(entry(version, state) for version, state in taken)
    known = releases(*(offer(version, *lists) for version, lists in previous.items()))
    running = maybe_running(history)
    listed = {one.release.version for one in known.reachable(running)}
    assert listed == {
        version
        for version in previous
        if is_above(version, running)
        and isinstance(judged(Update(version=version), history, known), Move)
    }


@given(
    st.lists(st.tuples(all_versions, st.sampled_from(["Completed", "Partial"])), min_size=1),
    st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda edge: edge[0] < edge[1])),
    st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)).filter(lambda edge: edge[0] < edge[1])),
)
def test_the_updates_of_a_service_that_are_listed_are_the_higher_ones_that_are_accepted(
    taken: list[tuple[str, str]], edges: set[tuple[int, int]], risky: set[tuple[int, int]]
) -> None:
    """Those with known risks are listed apart."""
    history = tuple(entry(version, state) for version, state in taken)
    running = maybe_running(history)
    names = ("1.0.0", "1.0.1", "1.1.0", "2.0.0")
    risks = [conditional(names[old], names[new], risk("Leak", ALWAYS)) for old, new in risky]
    answer = msgspec.json.decode(graph(names, *edges, conditional=risks))
    # The releases of the service are those of the directory, so nothing has to be fetched.
    for node in answer["nodes"]:
        node["payload"] = f"quarterdeck:{node['version']}"
    offered = offered_updates(parse_graph(msgspec.json.encode(answer)), running, START)
    listed = {one.version for one in offered.available}
    listed |= {one.release.version for one in offered.conditional}
    service = UpdateService(channel="stable", offered=offered)
    assert listed == {
        version
        for version in names
        if is_above(version, running)
        and isinstance(
            judge(
                UpdateRequest(
                    update=Update(version=version),
                    history=history,
                    releases=KNOWN,
                    service=service,
                )
            ),
            Move,
        )
    }


def is_above(version: str, running: tuple[str, ...]) -> bool:
    order = ("1.0.0", "1.0.1", "1.1.0", "2.0.0")
    return all(order.index(version) > order.index(one) for one in running)


def stuck(*versions: str, completed: str) -> History:
    """A cluster that completed one release, and then began these, the newest first."""
    return (*(entry(version, "Partial") for version in versions), entry(completed))


def test_out_of_a_stuck_update_the_way_back_needs_no_listing_within_the_minor() -> None:
    known = releases(offer("1.0.0"), offer("1.0.1", "1.0.0"), offer("1.0.2", "1.0.1"))
    back = Update(version="1.0.0")
    assert moved_to(judged(back, stuck("1.0.1", completed="1.0.0"), known)) == "1.0.0"
    assert moved_to(judged(back, stuck("1.0.2", "1.0.1", completed="1.0.0"), known)) == "1.0.0"
    settled = (entry("1.0.1"), entry("1.0.0"))
    assert isinstance(judged(back, settled, known), UpdateRefused), "nothing is stuck"


def test_across_minors_the_way_back_must_be_listed() -> None:
    known = releases(offer("1.0.0"), offer("1.1.0", "1.0.0"))
    refused = judged(Update(version="1.0.0"), stuck("1.1.0", completed="1.0.0"), known)
    assert isinstance(refused, UpdateRefused)
    assert refused.reason == "NotReachable"
    listed = releases(offer("1.0.0", "1.1.0"), offer("1.1.0", "1.0.0"))
    history = stuck("1.1.0", completed="1.0.0")
    assert moved_to(judged(Update(version="1.0.0"), history, listed)) == "1.0.0"


def test_what_cannot_be_reached_out_of_a_stuck_update_names_the_way_back() -> None:
    known = releases(offer("1.0.0"), offer("1.0.1", "1.0.0"), offer("1.0.9", "1.0.0"))
    outcome = judged(Update(version="1.0.9"), stuck("1.0.1", completed="1.0.0"), known)
    assert isinstance(outcome, UpdateRefused)
    assert outcome.remedy == "move to 1.0.0, back to what was completed last, instead"


def test_a_way_back_is_told_only_if_its_release_is_still_there() -> None:
    history = stuck("1.0.1", completed="1.0.0")
    there, gone = releases(offer("1.0.0"), offer("1.0.1", "1.0.0")), releases(offer("1.0.1"))
    assert UpdateRequest(update=None, history=history, releases=there).way_back == "1.0.0"
    assert UpdateRequest(update=None, history=history, releases=gone).way_back == ""
    across = stuck("1.1.0", completed="1.0.0")
    assert UpdateRequest(update=None, history=across, releases=there).way_back == ""
