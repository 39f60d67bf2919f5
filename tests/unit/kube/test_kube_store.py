"""The list/watch state machine: single cases, then whatever hypothesis thinks of."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from quarterdeck.api.meta import Key, Object
from quarterdeck.kube.store import Change, Store

NAMES = ("a", "b", "c")


def thing(name: str, uid: str, version: int, text: str = "", *, match: bool = True) -> Object:
    meta = {"name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": meta, "text": text, "match": match}


def identify(obj: Object) -> tuple[Key, str, int]:
    meta = obj["metadata"]
    return Key("", meta["name"]), meta["uid"], int(meta["resourceVersion"])


def story(change: Change[Object]) -> tuple[str | None, str | None]:
    """uid@version before and after."""

    def short(obj: Object | None) -> str | None:
        return f"{obj['metadata']['uid']}@{obj['metadata']['resourceVersion']}" if obj else None

    return short(change.old), short(change.new)


class Watched:
    """A store and everything that it told."""

    def __init__(self, **options: Any) -> None:
        self.store: Store[Object] = Store(identify, **options)
        self.told: list[tuple[str | None, str | None]] = []
        self.store.subscribe(lambda change: self.told.append(story(change)))

    def heard(self) -> list[tuple[str | None, str | None]]:
        told, self.told = self.told, []
        return told


@pytest.fixture
def watched() -> Watched:
    watched = Watched()
    watched.store.replace([thing("a", "u1", 5)], 10)
    assert watched.heard() == [(None, "u1@5")]
    return watched


def test_an_own_answer_is_there_at_once_and_its_echo_is_silent(watched: Watched) -> None:
    watched.store.put(thing("a", "u1", 12))
    watched.store.upsert(thing("a", "u1", 12))
    assert watched.heard() == [("u1@5", "u1@12")]


def test_an_older_event_does_not_take_an_own_answer_back(watched: Watched) -> None:
    watched.store.put(thing("a", "u1", 12))
    watched.store.upsert(thing("a", "u1", 11))
    assert watched.store.objects[Key("", "a")]["metadata"]["resourceVersion"] == "12"


def test_an_own_answer_that_comes_after_the_deletion_is_no_resurrection(watched: Watched) -> None:
    watched.store.delete(thing("a", "u1", 12))
    watched.store.put(thing("a", "u1", 11))
    assert watched.heard() == [("u1@5", None)]


def test_an_own_delete_is_told_once_and_older_events_do_not_undo_it(watched: Watched) -> None:
    watched.store.forget(Key("", "a"), "u1")
    watched.store.upsert(thing("a", "u1", 11))
    watched.store.put(thing("a", "u1", 12))
    watched.store.delete(thing("a", "u1", 13))
    assert watched.heard() == [("u1@5", None)]


def test_deleted_and_recreated_between_two_lists_is_two_changes(watched: Watched) -> None:
    watched.store.replace([thing("a", "u2", 20)], 21)
    assert watched.heard() == [("u1@5", None), (None, "u2@20")]


def test_a_list_older_than_our_own_create_does_not_delete_it(watched: Watched) -> None:
    watched.store.put(thing("b", "u2", 15))
    watched.store.replace([thing("a", "u1", 5)], 14)
    watched.store.upsert(thing("b", "u2", 15))
    assert watched.heard() == [(None, "u2@15")]


def test_a_list_older_than_our_own_delete_does_not_bring_it_back(watched: Watched) -> None:
    watched.store.forget(Key("", "a"), "u1")
    watched.store.replace([thing("a", "u1", 5)], 11)
    watched.store.delete(thing("a", "u1", 12))
    assert watched.heard() == [("u1@5", None)]


def test_a_list_older_than_our_create_and_delete_brings_nothing_back(watched: Watched) -> None:
    watched.store.put(thing("b", "u2", 12))
    watched.store.forget(Key("", "b"), "u2")
    watched.store.replace([thing("a", "u1", 5)], 11)
    watched.store.upsert(thing("b", "u2", 12))
    watched.store.delete(thing("b", "u2", 13))
    assert watched.heard() == [(None, "u2@12"), ("u2@12", None)]


def test_what_our_own_recreation_replaced_is_deleted_once(watched: Watched) -> None:
    watched.store.put(thing("a", "u2", 14))
    watched.store.forget(Key("", "a"), "u2")
    watched.store.upsert(thing("a", "u1", 11))
    watched.store.delete(thing("a", "u1", 12))
    assert watched.heard() == [("u1@5", None), (None, "u2@14"), ("u2@14", None)]


def test_a_write_of_ours_that_leaves_the_selector_is_gone_with_its_event(watched: Watched) -> None:
    watched.store.put(thing("a", "u1", 12))
    watched.store.delete(thing("a", "u1", 12))
    assert watched.heard() == [("u1@5", "u1@12"), ("u1@12", None)]


def test_an_unreadable_item_of_a_list_keeps_its_last_readable_version(watched: Watched) -> None:
    watched.store.replace([], 20, unreadable={Key("", "a")})
    assert watched.heard() == []
    assert Key("", "a") in watched.store.objects


def test_an_unreadable_object_can_still_be_deleted(watched: Watched) -> None:
    watched.store.delete_key(Key("", "a"), 20)
    assert watched.heard() == [("u1@5", None)]


def test_a_rewound_server_is_believed(watched: Watched) -> None:
    watched.store.replace([thing("a", "u1", 3), thing("b", "u0", 2)], 4)
    assert watched.heard() == [("u1@5", "u1@3"), (None, "u0@2")]


def test_who_has_ended_a_subscription_hears_no_more_and_the_others_do(watched: Watched) -> None:
    heard: list[tuple[str | None, str | None]] = []
    end = watched.store.subscribe(lambda change: heard.append(story(change)))
    end()
    watched.store.upsert(thing("a", "u1", 11))
    assert heard == [(None, "u1@5")]
    assert watched.heard() == [("u1@5", "u1@11")]


def test_a_store_that_is_cleared_tells_of_it_and_begins_again(watched: Watched) -> None:
    watched.store.put(thing("b", "u2", 12))
    watched.heard()
    watched.store.clear()
    assert sorted(watched.heard(), key=str) == [("u1@5", None), ("u2@12", None)]
    assert watched.store.objects == {}
    watched.store.replace([thing("a", "u1", 5), thing("b", "u2", 12)], 20)
    assert watched.heard() == [(None, "u1@5"), (None, "u2@12")]


def test_a_late_subscriber_hears_of_what_is_there(watched: Watched) -> None:
    heard: list[Any] = []
    watched.store.subscribe(lambda change: heard.append(story(change)))
    assert heard == [(None, "u1@5")]


def test_indexes_follow_changes() -> None:
    store = Watched(indexes={"text": lambda obj: obj["text"].split()}).store
    store.replace([thing("a", "u1", 1, "x y"), thing("b", "u2", 2, "y")], 3)
    assert [o["metadata"]["name"] for o in store.by_index("text", "y")] == ["a", "b"]
    store.upsert(thing("a", "u1", 4, "x"))
    store.delete(thing("b", "u2", 5))
    assert store.by_index("text", "y") == []
    assert [o["metadata"]["name"] for o in store.by_index("text", "x")] == ["a"]


class Server:
    """An API server in small: a history of states, one per version."""

    def __init__(self) -> None:
        self.states: list[dict[str, Object]] = [{}]
        self.uids = 0

    @property
    def version(self) -> int:
        return len(self.states) - 1

    def write(self, name: str, *, match: bool) -> Object:
        """Create the object, or change it."""
        current = self.states[-1].get(name)
        if current is None:
            self.uids += 1
        uid = current["metadata"]["uid"] if current else f"u{self.uids}"
        obj = thing(name, uid, self.version + 1, match=match)
        self.states.append({**self.states[-1], name: obj})
        return obj

    def delete(self, name: str) -> Object:
        left = dict(self.states[-1])
        gone = left.pop(name)
        self.states.append(left)
        return gone

    def listing(self, version: int) -> list[Object]:
        return [obj for obj in self.states[version].values() if obj["match"]]

    def event(self, version: int) -> tuple[str, Object] | None:
        """What a watch with a selector says about one version; None if nothing."""
        before, after = self.states[version - 1], self.states[version]
        for name in before.keys() | after.keys():
            old, new = before.get(name), after.get(name)
            if old is new:
                continue
            if new is not None and new["match"]:
                return "upsert", new
            if old is not None and old["match"]:
                uid = old["metadata"]["uid"]
                return "delete", thing(name, uid, version, match=False)
        return None


class CacheMachine(RuleBasedStateMachine):
    """Whatever the sequence of writes, events, answers, cuts and lists: it ends as the server."""

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.store: Store[Object] = Store(identify)
        self.store.subscribe(self.update)
        self.known: dict[Key, Object] = {}
        self.deleted_uids: set[str] = set()
        self.answers: list[tuple[str, Object]] = []
        self.list_in_flight: int | None = None
        self.position = 0  # how far the watch has got; None of it is lost by a cut
        self.must_list = False

    def update(self, change: Change[Object]) -> None:
        """Each change starts where the last one ended, so no deletion comes twice."""
        assert self.known.get(change.key) is change.old
        assert change.old is not None or change.new is not None
        if change.new is None:
            assert change.old is not None
            del self.known[change.key]
            self.deleted_uids.add(identify(change.old)[1])
        else:
            uid = identify(change.new)[1]
            assert change.old is None or identify(change.old)[1] == uid
            # Only a selector can bring the same object back.
            assert self.filtered or uid not in self.deleted_uids
            self.known[change.key] = change.new

    @initialize(filtered=st.booleans())
    def begin(self, filtered: bool) -> None:
        self.filtered = filtered

    @rule(name=st.sampled_from(NAMES), match=st.booleans(), ours=st.booleans())
    def write(self, name: str, match: bool, ours: bool) -> None:
        obj = self.server.write(name, match=match or not self.filtered)
        if ours and obj["match"]:
            self.answers.append(("put", obj))

    @rule(name=st.sampled_from(NAMES), ours=st.booleans())
    def delete(self, name: str, ours: bool) -> None:
        if name in self.server.states[-1]:
            gone = self.server.delete(name)
            if ours:
                self.answers.append(("forget", gone))

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        """Answers come in any order, early or late."""
        which = data.draw(st.integers(0, len(self.answers) - 1))
        self.deliver(*self.answers.pop(which))

    def deliver(self, kind: str, obj: Object) -> None:
        if kind == "put":
            self.store.put(obj)
        else:
            key, uid, _ = identify(obj)
            self.store.forget(key, uid)

    @precondition(lambda self: not self.must_list and self.list_in_flight is None)
    @rule(steps=st.integers(1, 5))
    def watch(self, steps: int) -> None:
        for _ in range(min(steps, self.server.version - self.position)):
            self.position += 1
            match self.server.event(self.position):
                case ("upsert", obj):
                    self.store.upsert(obj)
                case ("delete", obj):
                    self.store.delete(obj)

    @precondition(lambda self: not self.must_list and self.list_in_flight is None)
    @rule()
    def bookmark(self) -> None:
        self.store.advance(self.position)

    @precondition(lambda self: self.list_in_flight is None)
    @rule()
    def cut(self) -> None:
        """A new watch starts from what the store knows, and may repeat nothing and skip nothing."""
        self.position = max(self.store.version, 0)

    @rule()
    def gone(self) -> None:
        self.must_list = True

    @precondition(lambda self: self.must_list and self.list_in_flight is None)
    @rule(data=st.data())
    def ask_for_list(self, data: st.DataObject) -> None:
        """The server answers from its cache, not older than what we know, but maybe old."""
        self.list_in_flight = data.draw(st.integers(self.store.version, self.server.version))

    @precondition(lambda self: self.list_in_flight is not None)
    @rule()
    def list_arrives(self) -> None:
        assert self.list_in_flight is not None
        self.store.replace(self.server.listing(self.list_in_flight), self.list_in_flight)
        self.position = self.list_in_flight
        self.list_in_flight, self.must_list = None, False

    @precondition(lambda self: self.server.version > 2 and self.list_in_flight is None)
    @rule(data=st.data())
    def restore_backup(self, data: st.DataObject) -> None:
        """Versions go back, and are used again for something else."""
        kept = data.draw(st.integers(1, self.server.version - 1))
        if kept >= self.store.version:
            return
        del self.server.states[kept + 1 :]
        self.answers.clear()
        self.deleted_uids.clear()
        self.store.replace(self.server.listing(kept), kept)
        self.position, self.must_list = kept, False

    @invariant()
    def what_was_told_is_what_is_held(self) -> None:
        assert self.known == self.store.objects

    def teardown(self) -> None:
        if self.list_in_flight is not None:
            self.list_arrives()
        elif self.must_list:
            self.list_in_flight = self.store.version
            self.list_arrives()
        for kind, obj in self.answers:
            self.deliver(kind, obj)
        self.watch(self.server.version)
        expected = {identify(obj)[0]: obj for obj in self.server.listing(self.server.version)}
        assert self.store.objects == expected


TestCacheMachine = CacheMachine.TestCase
TestCacheMachine.settings = settings(max_examples=200, stateful_step_count=30)
