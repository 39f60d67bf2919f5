"""How the staleness benchmark counts the document's budget."""

import pytest
from bench.staleness import USER, Write, most_in_an_interval


def write(at: float, name: str = "one", code: int = 200, verb: str = "patch") -> Write:
    return Write(at, USER, verb, "clusteroperators", name, code)


@pytest.mark.parametrize(
    ("log", "most"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param([write(0), write(1), write(61), write(62)], 2, id="asked and answered"),
        pytest.param([write(0), write(1), write(59)], 3, id="once too often"),
        pytest.param([write(0), write(60), write(120)], 1, id="an interval apart"),
        pytest.param([write(0), write(1, "two"), write(2, "three")], 1, id="by operator"),
        pytest.param([write(0), write(1, code=409), write(2, verb="get")], 1, id="only writes"),
    ],
)
def test_the_most_writes_in_an_interval(log: list[Write], most: int) -> None:
    assert most_in_an_interval(log, 60) == most
