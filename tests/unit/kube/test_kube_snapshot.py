"""All objects at the start of a watch, whatever happens to them while they are being sent."""

from collections.abc import AsyncGenerator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.kube.gadgets import GADGETS, Gadget, gadget, line

from quarterdeck.api.meta import Key
from quarterdeck.kube import ConnectionFailed, Gone
from quarterdeck.kube.codec import Codec
from quarterdeck.kube.errors import Status, error_from_status
from quarterdeck.kube.snapshot import Snapshot, cannot_stream, from_stream
from quarterdeck.kube.watch_events import Event

EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


def bookmark(version: int, *, last: bool) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"} if last else {}
    meta = {"resourceVersion": str(version), "annotations": annotations}
    return line("BOOKMARK", {"metadata": meta, "spec": None})


def taken(snapshot: Snapshot[Gadget], stream: bytes) -> Sequence[Event[Gadget]]:
    return snapshot.add_events(Codec(GADGETS).events(stream))


@given(
    st.sets(st.sampled_from("abc")),
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12),
    st.lists(st.integers(1, 300), max_size=5),
)
def test_it_is_what_the_server_has_at_the_end(
    there: set[str], touched: list[tuple[str, bool]], cuts: list[int]
) -> None:
    held = dict.fromkeys(sorted(there), 1)
    stream = b"".join(line("ADDED", gadget(name, version="1")) for name in held)
    version = 1
    for name, remove in touched:
        version += 1
        kind = "ADDED" if name not in held else "DELETED" if remove else "MODIFIED"
        stream += line(kind, gadget(name, version=str(version)))
        if kind == "DELETED":
            del held[name]
        else:
            held[name] = version
    later = line("MODIFIED", gadget("later", version=str(version + 1)))
    lines = (stream + bookmark(version, last=True) + later).splitlines(keepends=True)
    snapshot = Snapshot(Codec(GADGETS))
    rest: Sequence[Event[Gadget]] = ()
    while not snapshot.complete:
        some = cuts.pop() if cuts else 1
        rest = taken(snapshot, b"".join(lines[:some]))
        lines = lines[some:]
    found = {key.name: int(obj.metadata.resource_version) for key, obj in snapshot.objects.items()}
    assert (found, snapshot.version) == (held, version)
    assert len(rest) + len(lines) == 1


def test_an_ordinary_bookmark_ends_nothing() -> None:
    snapshot = Snapshot(Codec(GADGETS))
    assert not taken(snapshot, bookmark(7, last=False))
    assert not snapshot.complete


@pytest.mark.parametrize(
    ("then", "unreadable"),
    [
        pytest.param(line("MODIFIED", gadget("a", size="x")), {Key("n", "a")}, id="stays so"),
        pytest.param(line("MODIFIED", gadget("a")), set(), id="is mended"),
        pytest.param(line("DELETED", gadget("a", size="x")), set(), id="goes"),
        pytest.param(line("DELETED", gadget("a")), set(), id="goes, mended"),
    ],
)
def test_an_object_that_does_not_decode_is_named(then: bytes, unreadable: set[Key]) -> None:
    snapshot = Snapshot(Codec(GADGETS))
    taken(snapshot, line("ADDED", gadget("a", size="x")) + line("ADDED", gadget("b")) + then)
    assert snapshot.unreadable == unreadable
    assert Key("n", "b") in snapshot.objects


def test_only_wanted_objects_are_held() -> None:
    codec = Codec(GADGETS, wanted=lambda key: key.name == "b")
    snapshot = Snapshot(codec)
    snapshot.add_events(codec.events(line("ADDED", gadget("a")) + line("ADDED", gadget("b"))))
    assert set(snapshot.objects) == {Key("n", "b")}


@pytest.mark.parametrize(
    ("end", "error"),
    [
        pytest.param(line("ERROR", EXPIRED), Gone, id="a failure"),
        pytest.param(b"", ConnectionFailed, id="nothing more"),
    ],
)
async def test_a_stream_that_ends_too_early_is_no_snapshot(
    end: bytes, error: type[Exception]
) -> None:
    async def stream() -> AsyncGenerator[bytes, None]:
        yield line("ADDED", gadget("a"))
        if end:
            yield end

    with pytest.raises(error):
        await from_stream(stream(), Codec(GADGETS), "/gadgets")


@pytest.mark.parametrize(
    ("code", "lists"),
    [
        *((code, True) for code in (400, 422, 429, 500)),
        *((code, False) for code in (401, 403, 404, 410, 503)),
    ],
)
def test_a_list_is_tried_where_it_may_do_better(code: int, lists: bool) -> None:
    assert cannot_stream(error_from_status("WATCH", "/gadgets", Status(code=code))) is lists
