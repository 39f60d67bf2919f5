"""The last lines of a worker, from what its ring says."""

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.router.last_lines import LastLines, framed

HEAD = "Nov 18 02:45:01 shop-7d9c haproxy[30000]: "
STOP = f"<140>{HEAD}Proxy public stopped (cumulated conns: FE: 12, BE: 0).\n".encode()
OTHER_STOP = STOP.replace(b"public", b"public_ssl")
CANARY = b"<142>Nov 18 02:45:01 shop-7d9c quarterdeck-canary[30000]: c0ffee\n"


def written(text: str) -> bytes:
    return f"<142>{HEAD}{text}\n".encode()


def late(text: str) -> bytes:
    return f"<150>{HEAD}{text}".encode()


def fed(*received: bytes) -> LastLines:
    lines = LastLines()
    lines.begin_at("c0ffee")
    for one in received:
        lines.feed(one)
    return lines


TEXTS = st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=0x24F), max_size=20))


@given(before=TEXTS, between=TEXTS, after=TEXTS, size=st.integers(1, 40), data=st.data())
def test_exactly_the_lines_that_have_not_arrived_are_sent(
    before: list[str], between: list[str], after: list[str], size: int, data: st.DataObject
) -> None:
    """In whatever pieces they come, and wherever rsyslog stopped to get them."""
    said = b"".join(
        (
            *(written(text) for text in before),
            CANARY,
            *(written(text) for text in between),
            STOP + OTHER_STOP,
            *(written(text) for text in after),
        )
    )
    lines = fed(*(said[at : at + size] for at in range(0, len(said), size)))
    assert (lines.has_canary, lines.stopped) == (True, True)
    all_lines = [late(text) for text in (*between, *after)]
    delivered = data.draw(st.integers(0, len(all_lines)))
    assert lines.undelivered(delivered) == all_lines[delivered:]
    assert lines.held == 0


def test_without_a_count_the_lines_after_the_stop_are_sent() -> None:
    lines = fed(CANARY, written("arrived, or lost"), STOP, written("last"))
    assert lines.undelivered(None) == [late("last")]


def test_a_canary_after_the_stop_begins_there() -> None:
    lines = fed(written("before"), STOP, written("between"), CANARY, written("last"))
    assert lines.undelivered(None) == [late("last")]


def test_a_canary_that_nobody_sent_begins_nothing() -> None:
    lines = fed(written("one"), CANARY.replace(b"c0ffee", b"other"))
    assert (lines.has_canary, lines.held) == (False, 1)


def test_notices_are_no_lines_and_do_not_stop() -> None:
    notice = f"<141>{HEAD}Server ns:web:80/s0 is UP\n".encode()
    forged = written("Proxy public stopped (cumulated conns: FE: 12, BE: 0).")
    lines = fed(notice, forged)
    assert (lines.stopped, lines.held) == (False, 1)


def test_a_decoded_line_break_stays_in_its_line() -> None:
    lines = fed(CANARY, written("/one\ntwo"), STOP)
    assert lines.undelivered(0) == [late("/one#012two")]


FORGED_HEAD = "Nov 18 02:45:01 shop-7d9c haproxy[1]: "
"""As of the right host, but of another process."""


def test_a_decoded_line_break_forges_no_line_and_no_stop() -> None:
    """A client that knows the form of a line would add lines of its own to the log."""
    lines = fed(
        CANARY,
        written(f"a\n<142>{FORGED_HEAD}b"),
        written(f"c\n<140>{FORGED_HEAD}Proxy public stopped (cumulated conns: FE: 1, BE: 0)."),
    )
    assert (lines.stopped, lines.held) == (False, 2)
    lines.feed(STOP)
    first, second = lines.undelivered(0)
    assert first == late(f"a#012<142>{FORGED_HEAD}b")
    assert second.startswith(late("c#012<140>"))


def test_each_line_has_its_length_in_bytes_before_it() -> None:
    assert framed([late("é"), late("b")]) == b"49 " + late("é") + b"48 " + late("b")
