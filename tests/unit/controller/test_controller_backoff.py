"""Back-off and the token bucket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.controller.rate import TokenBucket
from quarterdeck.kube import Backoff


@pytest.mark.parametrize(
    ("failures", "delay"),
    [
        pytest.param(1, 0.5, id="the first failure waits the base"),
        pytest.param(2, 1.0, id="the second twice that"),
        pytest.param(5, 8.0, id="the fifth sixteen times"),
        pytest.param(6, 10.0, id="never more than the limit"),
        pytest.param(100_000, 10.0, id="no overflow after very many"),
    ],
)
def test_delay_doubles_up_to_the_limit(failures: int, delay: float) -> None:
    assert Backoff(base=0.5, limit=10).delay(failures, lambda: 0.0) == delay


@given(failures=st.integers(1, 10_000), dice=st.floats(0, 1))
def test_jitter_only_shortens_and_by_no_more_than_its_part(failures: int, dice: float) -> None:
    backoff = Backoff(jitter=0.25)
    whole = backoff.delay(failures, lambda: 0.0)
    assert 0.75 * whole <= backoff.delay(failures, lambda: dice) <= whole


def test_a_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    bucket = TokenBucket(rate=4, burst=2)
    assert [bucket.reserve(0.0) for _ in range(4)] == [0, 0, 0.25, 0.5]
    assert bucket.reserve(10.0) == 0


def test_a_bucket_that_is_empty_gives_nothing_until_it_has_refilled() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    assert bucket.take(0.0)
    assert not bucket.take(0.5)
    assert bucket.take(1.0)


@given(times=st.lists(st.floats(0, 100), min_size=1, max_size=200).map(sorted))
def test_a_bucket_never_gives_more_than_burst_and_rate_allow(times: list[float]) -> None:
    bucket = TokenBucket(rate=2, burst=5)
    given_out = sum(bucket.take(now) for now in times)
    assert given_out <= 5 + 2 * (times[-1] - times[0]) + 1e-6
