"""Bytes to objects, the malformed ones too."""

import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kube.gadgets import GADGETS, gadget, gadget_list, line

from quarterdeck.api.meta import CONFIG_MAPS, Key
from quarterdeck.kube import UnexpectedAnswer, codec
from quarterdeck.kube.codec import Codec, LineSplitter
from quarterdeck.kube.watch_events import (
    Added,
    Bookmark,
    Deleted,
    Failure,
    Modified,
    UnreadableObject,
)

BOOKMARK = {"kind": "Gadget", "metadata": {"resourceVersion": "99"}, "spec": None}
STATUS = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


def test_events_of_all_kinds() -> None:
    stream = b"".join(
        [
            line("ADDED", gadget("a")),
            line("MODIFIED", gadget("b")),
            line("DELETED", gadget("c")),
            line("BOOKMARK", BOOKMARK),
            line("ERROR", STATUS),
        ]
    )
    added, modified, deleted, bookmark, failure = Codec(GADGETS).events(stream)
    assert isinstance(added, Added)
    assert isinstance(modified, Modified)
    assert isinstance(deleted, Deleted)
    assert added.object.spec.size == 1
    assert isinstance(bookmark, Bookmark)
    assert bookmark.version == 99
    assert isinstance(failure, Failure)
    assert failure.object.code == 410


@pytest.mark.parametrize("deleted", [False, True])
def test_a_malformed_object_costs_only_itself(deleted: bool) -> None:
    kind = "DELETED" if deleted else "MODIFIED"
    stream = (
        line("ADDED", gadget("a"))
        + line(kind, gadget("bad", size="large", version="8"))
        + line("BOOKMARK", BOOKMARK)
    )
    good, bad, bookmark = Codec(GADGETS).events(stream)
    assert isinstance(good, Added)
    assert bad == UnreadableObject(Key("n", "bad"), 8, deleted)
    assert isinstance(bookmark, Bookmark)


def test_a_malformed_item_of_a_list_costs_only_itself() -> None:
    items = [gadget("a"), gadget("bad", size=None), gadget("c")]
    body = gadget_list({"resourceVersion": "9", "continue": "more"}, items)
    page = Codec(GADGETS).listing(body)
    assert [obj.metadata.name for obj in page.items] == ["a", "c"]
    assert page.unreadable == [Key("n", "bad")]
    assert (page.resource_version, page.next) == ("9", "more")


def test_an_empty_list_may_be_null() -> None:
    page = Codec(GADGETS).listing(gadget_list({"resourceVersion": "9"}, None))
    assert page.items == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"<html>", id="a page"),
        pytest.param(b"{}", id="JSON"),
        pytest.param(gadget_list({"resourceVersion": ""}, []), id="of no version"),
        pytest.param(gadget_list({"resourceVersion": "9" * 5000}, []), id="of no real version"),
        pytest.param(b'{"metadata":{"resourceVersion":"9"},"items":[]}', id="of no kind"),
        pytest.param(
            gadget_list({"resourceVersion": "9"}, []).replace(b"GadgetList", b"Table"), id="a table"
        ),
        pytest.param(
            gadget_list({"resourceVersion": "9"}, []).replace(b"example.com", b"example.org"),
            id="of another group",
        ),
    ],
)
def test_what_is_no_list_at_all_is_an_error_that_can_be_recovered_from(body: bytes) -> None:
    with pytest.raises(UnexpectedAnswer, match="answer is not a list"):
        Codec(GADGETS).listing(body)


def test_what_is_no_event_at_all_is_an_error_that_can_be_recovered_from() -> None:
    with pytest.raises(UnexpectedAnswer, match="answer is not a watch event"):
        Codec(GADGETS).events(line("ADDED", gadget("a")) + b"<html>\n")


@pytest.mark.parametrize(
    ("managers", "kept"),
    [
        pytest.param(None, ["us", "them"], id="all are kept when asked for"),
        pytest.param(["us"], ["us"], id="only our own"),
        pytest.param([], [], id="none without a manager"),
    ],
)
def test_managed_fields_are_trimmed(managers: list[str] | None, kept: list[str]) -> None:
    body = gadget_list({"resourceVersion": "1"}, [gadget("a")])
    typed = Codec(GADGETS, managers=managers)
    assert [m.manager for m in typed.listing(body).items[0].metadata.managed_fields] == kept
    plain = Codec(GADGETS.plain, managers=managers)
    meta = plain.listing(body).items[0]["metadata"]
    assert [m["manager"] for m in meta.get("managedFields", [])] == kept


@pytest.mark.parametrize("managers", [None, ["us"]])
def test_a_cached_object_does_not_hold_the_bytes_that_it_came_in(
    managers: list[str] | None,
) -> None:
    """One object of a list would keep the whole list in memory."""
    codec = Codec(GADGETS, managers=managers)
    body = gadget_list({"resourceVersion": "1"}, [gadget("a"), gadget("b")])
    holders = sys.getrefcount(body)
    items = codec.listing(body).items
    assert items[0].metadata.managed_fields[0].fields
    assert sys.getrefcount(body) == holders


def test_trimming_an_answer_leaves_the_callers_object_alone() -> None:
    body = msgspec.json.encode(gadget("a"))
    typed = Codec(GADGETS, managers=["us"])
    answer = typed.object(body)
    assert len(typed.trimmed(answer).metadata.managed_fields) == 1
    assert len(answer.metadata.managed_fields) == 2
    plain = Codec(CONFIG_MAPS, managers=["us"])
    other = plain.object(body)
    assert len(plain.trimmed(other)["metadata"]["managedFields"]) == 1
    assert len(other["metadata"]["managedFields"]) == 2


def test_items_of_a_built_in_kinds_list_get_their_type() -> None:
    body = (
        b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},'
        b'"items":[{"metadata":{"name":"a"}}]}'
    )
    [item] = Codec(CONFIG_MAPS).listing(body).items
    assert (item["apiVersion"], item["kind"]) == ("v1", "ConfigMap")


@given(
    st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=20),
    st.lists(st.integers(1, 30)),
)
def test_lines_come_out_whole_however_the_stream_is_cut(
    lines: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(part + b"\n" for part in lines)
    splitter = LineSplitter()
    out = b""
    rest = stream
    for cut in [*cuts, len(stream) + 1]:
        chunk, rest = rest[:cut], rest[cut:]
        complete = splitter.feed(chunk)
        assert complete == b"" or complete.endswith(b"\n")
        out += complete
    assert out == stream


def test_a_line_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "MAX_LINE_BYTES", 100)
    splitter = LineSplitter()
    for _ in range(10):  # as many as one likes, if they end
        splitter.feed(b"x" * 60)
        assert splitter.feed(b"\n" + b"y") != b""
    splitter.feed(b"x" * 60)
    with pytest.raises(UnexpectedAnswer, match="does not end after 121 bytes"):
        splitter.feed(b"x" * 60)
