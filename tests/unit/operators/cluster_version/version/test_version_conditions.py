"""What ClusterVersion says of itself, and when it is written."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operators.cluster_version.version.builders import START, entry, release

from quarterdeck.api.config_v1 import ClusterStatusCondition, ClusterVersionStatus
from quarterdeck.kube.errors import ApiError, Conflict, Invalid, ServerError, Status
from quarterdeck.operators.cluster_version.sync.progress import ManifestFault, PayloadProgress
from quarterdeck.operators.cluster_version.version.announce import announcements
from quarterdeck.operators.cluster_version.version.blockers import Blocker
from quarterdeck.operators.cluster_version.version.conditions import (
    MESSAGE_LIMIT,
    Facts,
    desired_status,
    pause_before_write,
    refuses_content,
    updates_shown,
    without_updates,
)
from quarterdeck.operators.cluster_version.version.faults import (
    NONE,
    QUIET_PERIOD,
    REPORT_AFTER,
    StandingFaults,
    standing,
)
from quarterdeck.operators.cluster_version.version.updates import UpdateRefused
from quarterdeck.payload.graph import Mode

INGRESS = ManifestFault(
    manifest="0000_50_x_99.yaml: ClusterOperator.config.openshift.io/ingress",
    reason="ClusterOperatorNotAvailable",
    message="the cluster operator ingress is not available",
)
ROUTER = ManifestFault(
    manifest="0000_50_x_10.yaml: Deployment.apps/openshift-ingress/router",
    reason="RolloutPending",
    message="1 of 2 replicas are ready",
)
REFUSED = UpdateRefused(
    reason="NotReachable",
    field="spec.desiredUpdate.version",
    value="2.0.0",
    message="it cannot be reached from 1.0.0",
    remedy="move to 1.1.0 instead",
)


def progress(done: int, total: int = 30, **more: object) -> PayloadProgress:
    return msgspec.structs.replace(
        PayloadProgress(mode=Mode.UPDATING, done=done, total=total, run_level=""), **more
    )


def settled(**more: object) -> Facts:
    facts = Facts(
        generation=1,
        release=release("1.0.0"),
        mode=Mode.RECONCILING,
        history=(entry("1.0.0"),),
        available_updates=(),
    )
    return msgspec.structs.replace(facts, **more)


def updating(**more: object) -> Facts:
    return settled(
        **{
            "release": release("1.1.0"),
            "mode": Mode.UPDATING,
            "history": (entry("1.1.0", "Partial", 1), entry("1.0.0")),
            **more,
        }
    )


def initializing(**more: object) -> Facts:
    history = (entry("1.0.0", "Partial"),)
    return settled(**{"mode": Mode.INITIALIZING, "history": history, **more})


def said(facts: Facts, type_: str) -> tuple[str, str, str]:
    status = desired_status(facts, None, START)
    (found,) = (one for one in status.conditions if one.type == type_)
    return found.status, found.reason, found.message


@pytest.mark.parametrize(
    ("facts", "type_", "expected"),
    [
        pytest.param(
            settled(),
            "Progressing",
            ("False", "AsExpected", "Cluster version is 1.0.0"),
            id="settled: arrived",
        ),
        pytest.param(
            settled(), "Available", ("True", "ReleaseApplied", "Done applying 1.0.0"), id="settled"
        ),
        pytest.param(settled(), "Failing", ("False", "AsExpected", ""), id="settled: no failure"),
        pytest.param(
            settled(), "Upgradeable", ("True", "AsExpected", ""), id="settled: upgradeable"
        ),
        pytest.param(
            settled(),
            "ReleaseAccepted",
            ("True", "PayloadLoaded", 'Payload loaded version="1.0.0" image="quarterdeck:1.0.0"'),
            id="settled: accepted",
        ),
        pytest.param(
            settled(),
            "ImplicitlyEnabledCapabilities",
            ("False", "AsExpected", "Capabilities are as spec.capabilities says"),
            id="settled: no capability that is not asked for",
        ),
        pytest.param(
            settled(not_asked_for=("Console", "Ingress")),
            "ImplicitlyEnabledCapabilities",
            (
                "True",
                "CapabilitiesImplicitlyEnabled",
                "The cluster has had what belongs to these capabilities, so they stay enabled:"
                " Console, Ingress",
            ),
            id="capabilities that are not asked for are named",
        ),
        pytest.param(
            initializing(),
            "Available",
            ("False", "NoReleaseApplied", "No release has been fully applied yet"),
            id="before the first release is complete nothing is available",
        ),
        pytest.param(
            initializing(progress=progress(1, 3)),
            "Progressing",
            ("True", "Initializing", "Working towards 1.0.0: 1 of 3 done (33% complete)"),
            id="initializing",
        ),
        pytest.param(
            updating(),
            "Progressing",
            ("True", "Updating", "Working towards 1.1.0"),
            id="an update of which nothing is known yet",
        ),
        pytest.param(
            updating(progress=progress(12, waiting=(INGRESS, ROUTER))),
            "Progressing",
            (
                "True",
                "Updating",
                "Working towards 1.1.0: 12 of 30 done (40% complete),"
                " waiting on ingress, Deployment openshift-ingress/router",
            ),
            id="an update says how far it is and what it waits for",
        ),
        pytest.param(
            updating(progress=progress(12)),
            "Available",
            ("True", "ReleaseApplied", "Done applying 1.0.0"),
            id="during an update the old release is still there",
        ),
        pytest.param(
            updating(progress=progress(12), faults=(INGRESS,)),
            "Progressing",
            (
                "True",
                "ClusterOperatorNotAvailable",
                "Unable to apply 1.1.0: the cluster operator ingress is not available",
            ),
            id="an update that is stuck",
        ),
        pytest.param(
            updating(way_back="1.0.0", faults=(INGRESS,)),
            "Progressing",
            (
                "True",
                "ClusterOperatorNotAvailable",
                "Unable to apply 1.1.0: the cluster operator ingress is not available;"
                " it can be turned back: set spec.desiredUpdate.version to 1.0.0",
            ),
            id="an update that is stuck says where it can go back to",
        ),
        pytest.param(
            settled(faults=(INGRESS,)),
            "Progressing",
            (
                "False",
                "ClusterOperatorNotAvailable",
                "Error while reconciling 1.0.0: the cluster operator ingress is not available",
            ),
            id="a settled cluster with a fault",
        ),
        pytest.param(
            settled(faults=(INGRESS, ROUTER)),
            "Failing",
            (
                "True",
                "MultipleErrors",
                "several things are wrong:\n"
                f"* {INGRESS.manifest}: {INGRESS.message}\n* {ROUTER.manifest}: {ROUTER.message}",
            ),
            id="all faults are told",
        ),
        pytest.param(
            settled(refused=REFUSED),
            "ReleaseAccepted",
            (
                "False",
                "NotReachable",
                "spec.desiredUpdate.version: '2.0.0': it cannot be reached from 1.0.0;"
                " move to 1.1.0 instead",
            ),
            id="a refused update",
        ),
        pytest.param(
            settled(refused=REFUSED),
            "Failing",
            ("False", "AsExpected", ""),
            id="a refused update is no failure",
        ),
        pytest.param(
            initializing(unusable=REFUSED),
            "Progressing",
            (
                "False",
                "NotReachable",
                "Unable to apply 1.0.0: it cannot be reached from 1.0.0",
            ),
            id="a release that cannot be used makes no progress",
        ),
        pytest.param(
            settled(blockers=(Blocker(reason="A", message="a"), Blocker(reason="B", message="b"))),
            "Upgradeable",
            (
                "False",
                "MultipleReasons",
                "Minor updates are blocked, patch updates are not:\n* a\n* b",
            ),
            id="all blockers are told",
        ),
    ],
)
def test_conditions(facts: Facts, type_: str, expected: tuple[str, str, str]) -> None:
    assert said(facts, type_) == expected


def test_a_thousand_faults_still_fit_into_an_object() -> None:
    long = msgspec.structs.replace(INGRESS, message="x" * 3000)
    _, _, message = said(settled(faults=(long,) * 1000), "Failing")
    assert len(message) <= MESSAGE_LIMIT


facts_of_all_kinds = st.builds(
    lambda base, done, faults, waiting, refused, blocked: base(
        progress=progress(done, faults=faults, waiting=waiting),
        faults=faults,
        refused=refused,
        blockers=blocked,
    ),
    st.sampled_from([settled, updating, initializing]),
    st.integers(0, 30),
    st.lists(st.sampled_from([INGRESS, ROUTER]), max_size=2).map(tuple),
    st.lists(st.sampled_from([INGRESS, ROUTER]), max_size=2).map(tuple),
    st.sampled_from([None, REFUSED]),
    st.sampled_from([(), (Blocker(reason="A", message="a"),)]),
)


@given(facts_of_all_kinds, facts_of_all_kinds)
def test_the_status_is_a_fixed_point_and_times_move_with_the_status_only(
    before: Facts, after: Facts
) -> None:
    first = desired_status(before, None, START)
    later = START + timedelta(hours=1)
    assert desired_status(before, first, later) == first
    assert announcements(first, first) == ()
    second = desired_status(after, first, later)
    assert [one.type for one in second.conditions] == [one.type for one in first.conditions]
    for old, new in zip(first.conditions, second.conditions, strict=True):
        expected = START if old.status == new.status else later
        assert new.last_transition_time == expected


def test_conditions_of_others_stay() -> None:
    foreign = ClusterStatusCondition(
        type="Cloudy", status="True", reason="R", message="m", last_transition_time=START
    )
    was = msgspec.structs.replace(desired_status(settled(), None, START), conditions=(foreign,))
    assert desired_status(settled(), was, START).conditions[0] == foreign


def status(facts: Facts, was: ClusterVersionStatus | None = None) -> ClusterVersionStatus:
    return desired_status(facts, was, START)


def test_a_new_word_waits_and_anything_else_is_written_at_once() -> None:
    was = status(updating(progress=progress(1)))
    words = status(updating(progress=progress(2)), was)
    assert words != was
    assert pause_before_write(was, words, since_write=0.5, interval=2.0) == 1.5
    assert pause_before_write(was, words, since_write=9.0, interval=2.0) == 0.0
    for other in (
        updating(progress=progress(1), faults=(INGRESS,)),
        updating(progress=progress(1), generation=2),
        settled(),
    ):
        assert pause_before_write(was, status(other, was), since_write=0.1, interval=2.0) == 0.0
    assert pause_before_write(None, was, since_write=0.1, interval=2.0) == 0.0


def test_a_fault_is_told_when_it_has_stood_and_forgotten_when_all_is_done() -> None:
    failing = progress(3, faults=(INGRESS,))
    seen = standing(NONE, failing, 100.0)
    assert seen.reportable(100.0) == ()
    assert seen.next_look(100.0) == REPORT_AFTER
    later = standing(seen, failing, 100.0 + REPORT_AFTER)
    assert later.reportable(100.0 + REPORT_AFTER) == (INGRESS,)
    assert standing(later, progress(30), 101.0 + REPORT_AFTER) == NONE


def test_a_fault_that_comes_and_goes_does_not_flap() -> None:
    now, seen = 0.0, NONE
    told = []
    for step in range(40):
        faults = (INGRESS,) if step % 2 else ()
        seen = standing(seen, progress(3, faults=faults), now)
        told.append(bool(seen.reportable(now)))
        now += 1.0
    assert told == sorted(told)
    assert told[-1]
    assert standing(seen, progress(3), now + QUIET_PERIOD) == NONE


def test_before_the_engine_tells_anything_what_stood_stands() -> None:
    seen = StandingFaults(faults=(INGRESS,), since=0.0, seen=5.0)
    assert standing(seen, None, 100.0) == seen
    assert NONE.next_look(0.0) is None


def test_events_tell_of_begin_end_refusal_and_risk_once() -> None:
    begun = status(initializing())
    assert [one.reason for one in announcements(None, begun)] == ["ReleaseBegun"]
    done = status(settled(), begun)
    assert [one.reason for one in announcements(begun, done)] == ["ReleaseApplied"]
    no = status(settled(refused=REFUSED), done)
    (event,) = announcements(done, no)
    assert (event.type, event.reason, event.message) == ("Warning", "NotReachable", str(REFUSED))
    assert announcements(no, status(settled(refused=REFUSED, generation=2), no)) == ()
    risky = (msgspec.structs.replace(entry("1.1.0", "Partial", 1), accepted_risks="x"),)
    went = status(updating(history=(*risky, entry("1.0.0"))), done)
    assert [(one.reason, one.message) for one in announcements(done, went)] == [
        ("ReleaseBegun", "Working towards 1.1.0 from 1.0.0"),
        ("UpdateWithRisks", "the update to 1.1.0 begins although: x"),
    ]


def test_events_tell_when_something_fails_and_when_it_does_no_longer() -> None:
    well, ill = status(settled()), status(settled(faults=(INGRESS,)))
    assert [(one.type, one.reason) for one in announcements(well, ill)] == [
        ("Warning", "ClusterOperatorNotAvailable")
    ]
    assert [(one.type, one.reason) for one in announcements(ill, well)] == [
        ("Normal", "AsExpected")
    ]
    # Said once, not twice, though both conditions have it.
    broken = status(initializing(unusable=REFUSED, history=()))
    assert [one.action for one in announcements(None, broken)] == ["Accept"]


def api_error(code: int, message: str) -> ApiError:
    kind = {422: Invalid, 500: ServerError}.get(code, Conflict)
    return kind("PATCH", "/x", Status(code=code, message=message))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (api_error(422, "status.conditionalUpdates[0].risks: Too many"), True),
        (api_error(500, "etcdserver: request is too large"), True),
        (api_error(500, "trying to send message larger than max"), True),
        (api_error(500, "no leader"), False),
        (api_error(409, "the object has been modified"), False),
    ],
)
def test_which_refusals_are_about_the_content(error: ApiError, expected: bool) -> None:
    assert refuses_content(error) is expected


def test_without_the_updates_that_are_refused_the_conditions_say_why() -> None:
    facts = settled(available_updates=(release("1.1.0"),), retrieved=("True", "AsExpected", ""))
    assert facts.shows_updates
    left = without_updates(facts, "too many")
    assert not left.shows_updates
    assert updates_shown(left) != updates_shown(facts)
    found = desired_status(left, None, START)
    assert (found.available_updates, found.conditional_updates) == ((), ())
    (said,) = [one for one in found.conditions if one.type == "RetrievedUpdates"]
    assert (said.status, said.reason) == ("False", "ResponseInvalid")
    assert "too many; correct the update service's data" in said.message
