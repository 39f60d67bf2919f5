"""How often a checker tries to write to an operator to which the server refuses it."""

from quarterdeck.operators.staleness.pauses import LONGEST, Pauses


def test_attempts_get_rarer_so_that_nothing_is_written_for_ever() -> None:
    pauses, clock, waits = Pauses(5.0), 0.0, []
    for _ in range(12):
        pauses.refused("it", clock)
        waits.append(pauses.left("it", clock))
        clock += waits[-1]
        assert pauses.left("it", clock) == 0
    assert waits[:4] == [5, 10, 20, 40]
    assert waits[-1] == LONGEST
    assert pauses.left("another", clock) == 0


def test_an_operator_that_is_written_to_begins_anew() -> None:
    pauses = Pauses(5.0)
    for _ in range(5):
        pauses.refused("it", 0.0)
    pauses.forget("it")
    assert pauses.left("it", 0.0) == 0
    pauses.refused("it", 0.0)
    assert pauses.left("it", 0.0) == 5


def test_a_long_interval_is_the_pause() -> None:
    pauses = Pauses(3600.0)
    pauses.refused("it", 0.0)
    pauses.refused("it", 0.0)
    assert pauses.left("it", 0.0) == 3600
