"""The server's clock, with a clock of the test's own."""

from datetime import UTC, datetime

import pytest

from quarterdeck.kube.server_clock import ServerClock


def test_the_servers_time_goes_on_from_its_last_answer() -> None:
    elapsed = 100.0
    clock = ServerClock(lambda: elapsed)
    clock.update("Mon, 16 Nov 2026 08:00:00 GMT")
    elapsed += 90
    assert clock.now() == datetime(2026, 11, 16, 8, 1, 30, tzinfo=UTC)
    clock.update("Mon, 16 Nov 2026 07:00:00 GMT")
    assert clock.now() == datetime(2026, 11, 16, 7, 0, 0, tzinfo=UTC)


def test_an_answer_without_a_date_changes_nothing() -> None:
    clock = ServerClock(lambda: 0.0)
    clock.update("Mon, 16 Nov 2026 08:00:00 GMT")
    clock.update(None)
    assert clock.now() == datetime(2026, 11, 16, 8, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize("date", ["", "yesterday"])
def test_without_a_readable_date_there_is_no_time(date: str) -> None:
    clock = ServerClock(lambda: 0.0)
    clock.update(date)
    assert clock.now() is None
