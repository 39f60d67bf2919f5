"""What the client logs of its requests at the highest verbosity, and where it works on that."""

import threading
from io import StringIO

import pytest
from tests.integration.kube.scripted_server import answer, config_map, scripted

from quarterdeck.api.meta import CONFIG_MAPS
from quarterdeck.kube import Client
from quarterdeck.kube.redact import MAX_IN_LOOP, loggable
from quarterdeck.log import configure, set_verbosity


@pytest.mark.parametrize(
    ("size", "in_loop"),
    [
        pytest.param(MAX_IN_LOOP // 2, True, id="a small body"),
        pytest.param(2 * MAX_IN_LOOP, False, id="a large body"),
    ],
)
async def test_large_bodies_are_looked_through_for_secrets_outside_the_event_loop(
    size: int, in_loop: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that traces everything has to renew its Lease all the same."""
    loop_thread = threading.current_thread()
    looked: list[tuple[int, bool]] = []

    def look(path: str, body: bytes) -> str:
        looked.append((len(body), threading.current_thread() is loop_thread))
        return loggable(path, body)

    monkeypatch.setattr("quarterdeck.kube.transport.loggable", look)
    found = config_map("a", 1) | {"data": {"text": "x" * size}}
    said = StringIO()
    configure(verbosity=8, stream=said)
    try:
        async with (
            scripted(lambda _asked: answer(200, found)) as server,
            Client(server.connection) as client,
        ):
            await client.get(CONFIG_MAPS, "a", "n")
    finally:
        set_verbosity(2)
    (received,) = [one for one in looked if one[0]]
    assert received[1] is in_loop
    assert f"<{size} characters>" in said.getvalue()
