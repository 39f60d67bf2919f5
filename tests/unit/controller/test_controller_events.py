"""Which events are written, and when."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.controller.events import NOTE_LIMIT, Create, EventCorrelator, EventKey, shortened

WALL = datetime(2026, 1, 2, tzinfo=UTC)
ABOUT = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "namespace": "ns"}


def key(note: str = "same", name: str = "x", namespace: str = "ns") -> EventKey:
    return EventKey(
        uid=f"uid of {name}",
        namespace=namespace,
        name=name,
        type="Normal",
        reason="Because",
        action="Look",
        note=note,
    )


class Clock:
    def __init__(self) -> None:
        self.book = EventCorrelator(controller="quarterdeck.dev/test", instance="pod-1")
        self.now = 0.0

    def say(self, what: EventKey) -> Create | None:
        return self.book.record(what, ABOUT, self.now, WALL + timedelta(seconds=self.now))


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_first_is_written_at_once_and_whole(clock: Clock) -> None:
    made = clock.say(key())
    assert made is not None
    event = made.event
    assert event["metadata"]["name"].startswith("x.")
    assert {**event, "metadata": {"namespace": event["metadata"]["namespace"]}} == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "ns"},
        "eventTime": "2026-01-02T00:00:00.000000Z",
        "type": "Normal",
        "reason": "Because",
        "action": "Look",
        "note": "same",
        "regarding": ABOUT,
        "reportingController": "quarterdeck.dev/test",
        "reportingInstance": "pod-1",
    }


def test_events_of_cluster_scoped_objects_go_into_default(clock: Clock) -> None:
    made = clock.say(key(namespace=""))
    assert made is not None
    assert made.event["metadata"]["namespace"] == "default"


def test_the_same_again_is_counted_and_told_once_a_minute(clock: Clock) -> None:
    first = clock.say(key())
    for _ in range(99):
        clock.now += 0.5
        assert clock.say(key()) is None
    assert clock.book.due(clock.now) == []
    clock.now = 60
    (told,) = clock.book.due(clock.now)
    assert first is not None
    assert told.key.name == first.event["metadata"]["name"]
    assert told.series == {"count": 100, "lastObservedTime": "2026-01-02T00:00:49.500000Z"}
    assert clock.book.due(clock.now + 100) == []


def test_something_else_is_another_event(clock: Clock) -> None:
    names = set()
    for what in (key(), key(note="other"), key(name="y")):
        made = clock.say(what)
        assert made is not None
        names.add(made.event["metadata"]["name"])
    assert len(names) == 3


def test_after_a_long_silence_the_same_is_a_new_event(clock: Clock) -> None:
    clock.say(key())
    clock.now = EventCorrelator.SERIES_LIFETIME
    assert clock.book.due(clock.now) == []
    assert clock.say(key()) is not None


def test_an_object_with_too_much_to_say_is_cut_short_and_others_are_heard(clock: Clock) -> None:
    written = [clock.say(key(note=f"different {number}")) for number in range(100)]
    assert sum(made is not None for made in written) == 25
    assert clock.book.dropped == 75
    assert clock.say(key(name="quiet")) is not None


def test_the_whole_process_is_limited_too(clock: Clock) -> None:
    written = [clock.say(key(name=f"object {number}")) for number in range(1000)]
    assert sum(made is not None for made in written) == 200


def test_what_is_remembered_is_bounded(clock: Clock) -> None:
    for number in range(3 * EventCorrelator.MAX_SERIES):
        clock.now += 1
        clock.say(key(name=f"object {number}"))
    assert len(clock.book._known) <= EventCorrelator.MAX_SERIES
    assert len(clock.book._per_object) <= EventCorrelator.MAX_SERIES


def test_objects_that_are_quiet_again_are_forgotten_and_loud_ones_are_not(clock: Clock) -> None:
    """Those of pods that went would otherwise stay, thousands of them."""
    for number in range(25):
        clock.say(key(name="loud", note=f"different {number}"))
    for number in range(100):
        clock.say(key(name=f"quiet {number}"))
    clock.now = 60
    clock.book.due(clock.now)
    assert [name for _, _, name in clock.book._per_object] == ["loud"]
    assert clock.say(key(name="loud", note="one more in a minute")) is not None
    assert clock.say(key(name="loud", note="and not two")) is None


@given(st.text(max_size=2000) | st.sampled_from(["é" * 600, "x" * 1024, "x" * 1025]))
def test_a_note_is_cut_to_what_the_server_takes(note: str) -> None:
    cut = shortened(note)
    assert len(cut.encode()) <= NOTE_LIMIT
    assert cut == note or cut.endswith("…")


def test_what_several_processes_see_has_the_same_name_in_all_of_them() -> None:
    """The server takes it from the first; another time it is another event."""
    one, other, later = (
        clock.say(msgspec.structs.replace(key(note=note), once=once))
        for clock, note, once in (
            (Clock(), "in my words", "verdict 1"),
            (Clock(), "in mine", "verdict 1"),
            (Clock(), "in mine", "verdict 2"),
        )
    )
    assert one is not None
    assert other is not None
    assert later is not None
    names = [made.event["metadata"]["name"] for made in (one, other, later)]
    assert names[0] == names[1] != names[2]
