import pytest

from quarterdeck.haproxy.sidecar import Returned, returned_canary


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" a1 12 5 7 Nov 18 02:45:00", Returned("a1", 12, (5, 7), "Nov 18 02:45:00")),
        pytest.param(
            " a1 12 Nov 18 02:45:00",
            Returned("a1", 12, (), "Nov 18 02:45:00"),
            id="from the rsyslog.conf of a release that counts all lines together",
        ),
        pytest.param("a1", Returned("a1", 0, (), ""), id="nothing but a name"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_what_comes_back_is_read(text: str, said: Returned | None) -> None:
    assert returned_canary(text) == said
