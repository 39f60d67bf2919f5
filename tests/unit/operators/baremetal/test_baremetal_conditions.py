"""The conditions of both operators, for each platform and each state of metal3."""

from datetime import timedelta

import pytest

from quarterdeck.metal3.platform import BareMetal, OtherPlatform, Platform, UnknownPlatform
from quarterdeck.metal3.state import State, StateReason
from quarterdeck.operators.baremetal.conditions import report
from quarterdeck.operators.baremetal.settings import Settings
from quarterdeck.operators.machine_api.build import Build
from quarterdeck.operators.machine_api.conditions import with_metal3, without_metal3
from quarterdeck.status.report import Report

ANY = State(StateReason.SYNCING, "m")


def statuses(found: Report) -> dict[str, tuple[str, str | None]]:
    return {one.type: (one.status, one.reason) for one in found.conditions}


def row(found: Report) -> str:
    """Available, Progressing, Degraded, Disabled, and whether the version moves."""
    seen = statuses(found)
    types = ("Available", "Progressing", "Degraded", "Disabled")
    words = [seen[type_][0] for type_ in types if type_ in seen]
    return " ".join([*words, "moves" if found.at_release_version else "stays"])


TABLE = [
    (OtherPlatform("None"), ANY, "True False False True moves"),
    (UnknownPlatform("m"), ANY, "True False True False stays"),
    (BareMetal(), State(StateReason.WAITING, "m"), "True False False False moves"),
    (BareMetal(), State(StateReason.INVALID, "m"), "True True True False stays"),
    (BareMetal(), State(StateReason.NO_IMAGES, "m"), "True True True False stays"),
    (BareMetal(), State(StateReason.NO_PASSWORD, "m"), "True True True False stays"),
    (BareMetal(), State(StateReason.SYNCING, "m"), "True True False False stays"),
    (BareMetal(), State(StateReason.STANDING_DOWN, "m"), "True True False False stays"),
    (BareMetal(), State(StateReason.COMPLETE, "m"), "True False False False moves"),
    (BareMetal(), State(StateReason.TIMED_OUT, "m"), "True True True False stays"),
    (BareMetal(), State(StateReason.REFUSED, "m"), "True True True False stays"),
    (BareMetal(), State(StateReason.CANNOT_READ, "m"), "True True True False stays"),
    (BareMetal(), State(StateReason.CRASH_LOOPING, "m"), "False False True False stays"),
]


@pytest.mark.parametrize(("platform", "state", "wanted"), TABLE)
def test_the_table_of_the_baremetal_operator(platform: Platform, state: State, wanted: str) -> None:
    found = report(platform, state)
    assert row(found) == wanted
    assert statuses(found)["Upgradeable"][0] == "True"
    assert all(one.reason for one in found.conditions)


def test_each_reason_has_a_row_in_the_table() -> None:
    assert {state.reason for platform, state, _ in TABLE if platform == BareMetal()} == set(
        StateReason
    )


def test_a_roll_out_has_five_minutes_to_make_progress() -> None:
    """By default; the machine API operator has the same time, and no option."""
    assert Settings().deploy_timeout == timedelta(minutes=5)


@pytest.mark.parametrize(
    ("reason", "type_", "message"),
    [
        (StateReason.WAITING, "Available", "m"),
        (
            StateReason.INVALID,
            "Progressing",
            "Unable to apply Provisioning CR: invalid configuration",
        ),
        (StateReason.INVALID, "Degraded", "m"),
        (StateReason.COMPLETE, "Progressing", "m"),
        (StateReason.TIMED_OUT, "Degraded", "m"),
        (StateReason.CANNOT_READ, "Degraded", "m"),
        (StateReason.CRASH_LOOPING, "Degraded", "m"),
    ],
)
def test_the_reasons_and_messages(reason: StateReason, type_: str, message: str) -> None:
    (found,) = (
        one for one in report(BareMetal(), State(reason, "m")).conditions if one.type == type_
    )
    assert (found.reason, found.message) == (reason, message)


@pytest.mark.parametrize(
    ("reason", "wanted"),
    [
        (StateReason.STANDING_DOWN, "True False False moves"),
        (StateReason.COMPLETE, "True False False moves"),
        (StateReason.WAITING, "True False False moves"),
        (StateReason.SYNCING, "True True False stays"),
        (StateReason.INVALID, "True False True stays"),
        (StateReason.CANNOT_READ, "True False True stays"),
        (StateReason.REFUSED, "True False True stays"),
    ],
)
def test_the_table_of_the_machine_api_operator(reason: StateReason, wanted: str) -> None:
    assert row(with_metal3(Build.C, BareMetal(), State(reason, "m"))) == wanted
    assert row(with_metal3(Build.C, OtherPlatform("None"), State(reason, "m"))) == (
        "True False False moves"
    )
    assert row(without_metal3()) == "True False False moves"


@pytest.mark.parametrize(
    ("build", "platform", "upgradeable"),
    [
        (Build.A, BareMetal(), "False"),
        (Build.A, UnknownPlatform("m"), "False"),
        (Build.A, OtherPlatform("AWS"), "True"),
        (Build.B, BareMetal(), "True"),
        (Build.C, BareMetal(), "True"),
    ],
)
def test_only_an_ungated_build_on_bare_metal_keeps_from_a_minor_update(
    build: Build, platform: Platform, upgradeable: str
) -> None:
    state = State(StateReason.COMPLETE, "m")
    assert statuses(with_metal3(build, platform, state))["Upgradeable"][0] == upgradeable
