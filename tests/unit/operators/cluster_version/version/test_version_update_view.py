"""What people see of the cluster's version and its updates."""

import io
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.operators.cluster_version.version.builders import START, entry, release

from quarterdeck.api.conditions import Condition
from quarterdeck.api.config_v1 import (
    ClusterStatusCondition,
    ClusterVersion,
    ClusterVersionSpec,
    ClusterVersionStatus,
    ConditionalUpdate,
    ConditionalUpdateRisk,
    Update,
)
from quarterdeck.api.config_v1.cluster_version_updates import ClusterCondition
from quarterdeck.api.meta import ObjectMeta
from quarterdeck.cli.update_text import ProgressBar, as_brief, as_sentence, as_text
from quarterdeck.operators.cluster_version.sync.progress import PayloadProgress
from quarterdeck.operators.cluster_version.version.texts import working_towards
from quarterdeck.operators.cluster_version.version.update_view import (
    UpdateView,
    unaccepted_risks,
    update_patch,
    update_view,
)
from quarterdeck.payload.graph import Mode
from quarterdeck.status.release_progress import progress_in

ID = "00000000-0000-4000-8000-000000000000"


def condition(type_: str, status: str, message: str = "") -> ClusterStatusCondition:
    return ClusterStatusCondition(
        type=type_, status=status, reason="Because", message=message, last_transition_time=START
    )


def risky(version: str, recommended: str) -> ConditionalUpdate:
    risk = ConditionalUpdateRisk(
        url="https://example.test/fire",
        name="Fire",
        message="It burns.",
        matching_rules=(ClusterCondition(type="Always"),),
    )
    told = Condition(
        type="Recommended", status=recommended, reason="R", message="", last_transition_time=START
    )
    return ConditionalUpdate(release=release(version), risks=(risk,), conditions=(told,))


def version(*conditions: ClusterStatusCondition, **status: object) -> ClusterVersion:
    whole = ClusterVersionStatus(
        desired=release("1.0.0"),
        history=(entry("1.0.0"),),
        observed_generation=3,
        version_hash="x",
        conditions=conditions,
        available_updates=(),
    )
    return ClusterVersion(
        metadata=ObjectMeta(name="version", generation=3),
        spec=ClusterVersionSpec(cluster_id=ID),
        status=msgspec.structs.replace(whole, **status),
    )


@given(done=st.integers(0, 10_000), total=st.integers(1, 10_000), number=st.integers(0, 99))
def test_progress_is_read_back_from_the_message(done: int, total: int, number: int) -> None:
    progress = PayloadProgress(mode=Mode.UPDATING, run_level="0000_20", done=done, total=total)
    found = progress_in(working_towards(f"1.2.{number}", progress))
    assert found is not None
    assert (found.done, found.total) == (done, total)


@pytest.mark.parametrize("message", ["", "Working towards 1.0.0", "Cluster version is 1.0.0"])
def test_a_message_without_progress_has_none(message: str) -> None:
    assert progress_in(message) is None


def test_updates_are_sorted_and_those_that_leave_the_minor_are_blocked() -> None:
    view = update_view(
        version(
            condition("Upgradeable", "False", "mind the gap"),
            available_updates=(release("1.0.2"), release("1.10.0"), release("1.2.0")),
            conditional_updates=(risky("1.0.3", "Unknown"), risky("1.3.0", "True")),
        )
    )
    assert view.updates is not None
    assert [(one.version, one.blocked, one.recommended) for one in view.updates] == [
        ("1.10.0", True, "True"),
        ("1.3.0", True, "True"),
        ("1.2.0", True, "True"),
        ("1.0.3", False, "Unknown"),
        ("1.0.2", False, "True"),
    ]
    assert view.blocked == "mind the gap"
    text = as_text(view)
    assert "1.0.3 has the risk Fire:\n  It burns. (https://example.test/fire)" in text
    assert "1.3.0 has the risk" not in text
    assert text.splitlines()[-1].endswith("update 1.0.2 --watch")


def test_versions_that_cannot_be_compared_come_last() -> None:
    view = update_view(version(available_updates=(release("odd"), release("1.0.1"))))
    assert view.updates is not None
    assert [one.version for one in view.updates] == ["1.0.1", "odd"]


DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("asked", "image", "accepted", "left"),
    [
        pytest.param("1.0.3", "", [], ["Fire"], id="by version"),
        pytest.param("1.0.3", "", ["Water"], ["Fire"], id="another risk is accepted"),
        pytest.param("1.0.3", "", ["Fire"], [], id="accepted"),
        pytest.param("", f"r.test/q@{DIGEST}", [], ["Fire"], id="by digest"),
        pytest.param("", f"r.test/q:x@{DIGEST}", [], ["Fire"], id="by tag and digest"),
        pytest.param("", f"mirror.test/q@{DIGEST}", [], ["Fire"], id="by digest, elsewhere"),
        pytest.param("", f"r.test/q@sha256:{'b' * 64}", [], [], id="another digest"),
        pytest.param("", "r.test/q:1.0.3", [], ["Fire"], id="a tag may be any of them"),
        pytest.param("", "quarterdeck:1.0.2", [], [], id="of the directory"),
        pytest.param("1.0.2", "", [], [], id="recommended"),
        pytest.param("9.9.9", "", [], [], id="unknown"),
    ],
)
def test_risks_have_to_be_accepted(
    asked: str, image: str, accepted: list[str], left: list[str]
) -> None:
    update = risky("1.0.3", "False")
    there = msgspec.structs.replace(update.release, image=f"r.test/q@{DIGEST}")
    view = update_view(
        version(
            available_updates=(release("1.0.2"),),
            conditional_updates=(msgspec.structs.replace(update, release=there),),
        )
    )
    found = unaccepted_risks(view, asked, image, frozenset(accepted))
    assert [risk.name for risk in found] == left


def test_a_release_that_is_being_retrieved_is_no_success() -> None:
    view = update_view(version(condition("ReleaseAccepted", "Unknown", "fetching r.test/q")))
    text = as_sentence(msgspec.structs.replace(view, requested="1.0.1"))
    assert "1.0.1 is being retrieved:\n  fetching r.test/q\n" in text


def test_an_update_under_way_has_its_progress_and_its_way_back() -> None:
    message = "Working towards 1.0.1: 3 of 12 done (25% complete), waiting on ingress"
    view = update_view(
        version(
            condition("Progressing", "True", message),
            desired=release("1.0.1"),
            history=(entry("1.0.1", "Partial", 5), entry("1.0.0")),
        )
    )
    assert (view.state, view.done, view.total) == ("updating", 3, 12)
    assert (view.version, view.desired, view.turn_back_to) == ("1.0.0", "1.0.1", "1.0.0")
    assert as_sentence(view) == (
        "updating from 1.0.0 to 1.0.1: 3 of 12 manifests are done\nit waits for ingress"
    )
    (follow,) = as_brief(view).splitlines()[2:]
    assert re.fullmatch(r"to follow it: \S+ update --watch", follow)
    back, last = as_text(view).splitlines()[-2:]
    assert re.fullmatch(r"to turn it back: \S+ update 1.0.0 --watch", back)
    assert last == follow


def test_a_failing_update_tells_what_fails_and_the_way_back() -> None:
    view = update_view(
        version(
            condition("Failing", "True", "several things are wrong:\n* a\n* b"),
            desired=release("1.0.1"),
            history=(entry("1.0.1", "Partial", 5), entry("1.0.0")),
        )
    )
    assert view.state == "failing"
    text = as_sentence(view)
    assert "what fails:\n  several things are wrong:\n  * a\n  * b\n" in text
    assert text.splitlines()[-1].endswith("update 1.0.0 --watch")


def test_nothing_of_others_reaches_the_terminal() -> None:
    evil = "\x1b]52;c;evil\x07"
    view = update_view(
        version(
            condition("Failing", "True", evil),
            condition("ReleaseAccepted", "False", evil),
            condition("Upgradeable", "False", evil),
            condition("RetrievedUpdates", "False", evil),
            conditional_updates=(
                msgspec.structs.replace(
                    risky("1.0.3", "False"),
                    risks=(
                        msgspec.structs.replace(risky("1.0.3", "False").risks[0], message=evil),
                    ),
                ),
            ),
        )
    )
    assert "\x1b]" not in as_text(view)
    stream = io.StringIO()
    ProgressBar(stream).show(msgspec.structs.replace(view, message=evil))
    assert "\x1b" not in stream.getvalue()


def test_without_a_status_nothing_is_known() -> None:
    bare = msgspec.structs.replace(version(), status=None)
    assert update_view(bare).state == "unknown"
    asked = ClusterVersionSpec(cluster_id=ID, desired_update=Update(image="a@b"))
    assert update_view(msgspec.structs.replace(bare, spec=asked)).requested == "a@b"
    assert "the possible updates are not known yet" in as_text(update_view(bare))


def test_a_patch_takes_back_what_an_earlier_request_had() -> None:
    assert update_patch("1.0.1", "", force=False) == {
        "spec": {
            "desiredUpdate": {
                "version": "1.0.1",
                "image": None,
                "force": None,
                "architecture": None,
            }
        }
    }


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_the_bar_is_drawn_on_one_line_and_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    bar = ProgressBar(stream)
    view = UpdateView(
        version="1.0.0",
        desired="1.0.1",
        state="updating",
        message=f"Working towards 1.0.1: 1 of 2 done (50% complete), waiting on {'x' * 90}",
        done=1,
        total=2,
    )
    bar.show(view)
    bar.show(view)
    bar.end()
    drawn = stream.getvalue()
    assert drawn.count("\r") == 1
    line = drawn.removeprefix("\r\x1b[K").rstrip("\n")
    assert line.startswith(f"1.0.1 [{'#' * 15}{'.' * 15}]  50% waiting on xxx")
    assert len(line) < 60


def test_a_fault_stays_above_the_bar_in_full_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of the bar is cut; who follows a stuck update has to read why, and the way back."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    bar = ProgressBar(stream)
    fault = f"0000_20_pilot.yaml: Deployment.apps/here/pilot: {'x' * 90}"
    view = UpdateView(
        version="1.0.0",
        desired="1.0.1",
        state="failing",
        failing=fault,
        turn_back_to="1.0.0",
        message=f"Unable to apply 1.0.1: {'x' * 90}",
    )
    bar.show(view)
    bar.show(msgspec.structs.replace(view, message="Unable to apply 1.0.1: y"))
    lines = stream.getvalue().splitlines()
    assert lines.count(f"  {fault}") == 1
    assert any(re.fullmatch(r"to turn the update back: \S+ update 1.0.0 --watch", x) for x in lines)
