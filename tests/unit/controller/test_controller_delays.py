"""The one place where keys wait for their time."""

from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.controller.delays import KEPT_CANCELLED, Delays


def taken(delays: Delays[str], now: float) -> list[tuple[str, float]]:
    found = []
    while (one := delays.take(now)) is not None:
        found.append(one)
    return found


def test_keys_come_when_they_are_due_the_earliest_first() -> None:
    delays: Delays[str] = Delays()
    for key, due in (("late", 9.0), ("second", 2.0), ("first", 1.0)):
        assert delays.put(key, due)
    assert delays.next() == 1.0
    assert taken(delays, 5.0) == [("first", 1.0), ("second", 2.0)]
    assert (len(delays), delays.next()) == (1, 9.0)


def test_keys_of_the_same_time_come_in_the_order_they_were_put() -> None:
    delays: Delays[str] = Delays()
    for key in "cab":
        delays.put(key, 1.0)
    assert [key for key, _ in taken(delays, 1.0)] == ["c", "a", "b"]


def test_the_earlier_delay_counts() -> None:
    delays: Delays[str] = Delays()
    delays.put("x", 5.0)
    assert not delays.put("x", 5.0)
    assert not delays.put("x", 7.0)
    assert delays.put("x", 3.0)
    assert taken(delays, 10.0) == [("x", 3.0)]


def test_a_key_that_was_dropped_waits_no_more_and_may_be_put_later() -> None:
    delays: Delays[str] = Delays()
    delays.put("x", 5.0)
    delays.drop("x")
    assert (delays.next(), "x" in delays) == (None, False)
    delays.put("x", 7.0)
    assert delays.take(6.0) is None
    assert taken(delays, 7.0) == [("x", 7.0)]


def test_a_key_that_is_put_and_dropped_for_ever_takes_no_memory() -> None:
    delays: Delays[str] = Delays()
    delays.put("still", 0.0)
    for number in range(10_000):
        delays.put("x", float(number))
        delays.drop("x")
    assert len(delays._heap) <= 2 * len(delays) + KEPT_CANCELLED


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), st.integers(0, 20)),
        st.tuples(st.just("drop"), st.sampled_from("abc"), st.just(0)),
        st.tuples(st.just("take"), st.just(""), st.integers(0, 20)),
    )
)


@given(steps)
def test_it_does_what_a_plain_table_of_times_does(doing: list[tuple[str, str, int]]) -> None:
    delays: Delays[str] = Delays()
    table: dict[str, float] = {}
    for what, key, time in doing:
        match what:
            case "put":
                assert delays.put(key, time) == (time < table.get(key, time + 1))
                table[key] = min(time, table.get(key, time))
            case "drop":
                delays.drop(key)
                table.pop(key, None)
            case _:
                found = taken(delays, time)
                assert sorted(found) == sorted(it for it in table.items() if it[1] <= time)
                assert [due for _, due in found] == sorted(due for _, due in found)
                table = {key: due for key, due in table.items() if due > time}
        assert delays.next() == min(table.values(), default=None)
        assert len(delays) == len(table)
