"""Waits in the sidecar until the router of the same pod has ended.

The router listens for canaries in the directory that both share, until HAProxy has ended. Then a
datagram to that socket is refused.
"""

import socket
import time
from pathlib import Path

from quarterdeck.haproxy.access_log import DIRECTORY
from quarterdeck.haproxy.sidecar import CANARY_SOCKET_NAME

_INTERVAL = 0.1


def wait_until_ended(directory: Path = Path(DIRECTORY)) -> None:
    """Return when no router listens for canaries; at once if none has begun to."""
    while is_listening(directory / CANARY_SOCKET_NAME):
        time.sleep(_INTERVAL)


def is_listening(path: Path) -> bool:
    """Whether a process has the datagram socket of this path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        try:
            sender.connect(str(path))
        except OSError:
            return False
    return True
