import socket
import threading
from pathlib import Path

from quarterdeck.haproxy.sidecar import CANARY_SOCKET_NAME
from quarterdeck.router.wait_for_end import wait_until_ended


def test_who_never_listened_has_ended(tmp_path: Path) -> None:
    wait_until_ended(tmp_path)


def test_it_ends_when_nobody_listens_any_more(tmp_path: Path) -> None:
    """The file of the socket stays, as after a kill."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as router:
        router.bind(str(tmp_path / CANARY_SOCKET_NAME))
        waiting = threading.Thread(target=wait_until_ended, args=[tmp_path])
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
    waiting.join(60)
    assert not waiting.is_alive()
