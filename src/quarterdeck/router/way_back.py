"""The socket on which canaries come back from rsyslog."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from quarterdeck.haproxy.sidecar import Returned, returned_canary

_LARGEST_DATAGRAM = 4096


class WayBack:
    """Hands each canary that comes back to whoever waits for it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._receiver: socket.socket | None = None
        self._expected: dict[str, asyncio.Future[Returned]] = {}

    @contextmanager
    def expecting(self, name: str) -> Iterator["asyncio.Future[Returned]"]:
        """What rsyslog will say with this canary; `OSError` if we cannot listen, or not any more.

        It is expected as long as the context lasts.
        """
        self._listen()
        found: asyncio.Future[Returned] = asyncio.get_running_loop().create_future()
        self._expected[name] = found
        try:
            yield found
        finally:
            del self._expected[name]
            found.cancel()

    def close(self) -> None:
        """Stop listening; whoever waits gets no canary any more."""
        self._stop_listening()
        # Not cancelled: who waits would take that for a cancellation of its own.
        for one in self._expected.values():
            if not one.done():
                one.set_exception(ConnectionAbortedError(f"{self.path} was closed"))
                one.exception()  # Nobody may wait for it any more.

    def _stop_listening(self) -> None:
        if self._receiver is not None:
            asyncio.get_running_loop().remove_reader(self._receiver)
            self._receiver.close()
            self._receiver = None

    def _listen(self) -> None:
        """Open the socket, again if its file is gone; others may wait meanwhile."""
        if self._receiver is not None and self.path.exists():
            return
        self._stop_listening()
        with suppress(FileNotFoundError):
            self.path.unlink()
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            receiver.setblocking(False)
            receiver.bind(str(self.path))
        except OSError:
            receiver.close()
            raise
        self._receiver = receiver
        asyncio.get_running_loop().add_reader(receiver, self._read, receiver)

    def _read(self, receiver: socket.socket) -> None:
        with suppress(BlockingIOError):
            text = receiver.recv(_LARGEST_DATAGRAM).decode(errors="replace")
            said = returned_canary(text)
            waiting = self._expected.get(said.name) if said else None
            if said and waiting is not None and not waiting.done():
                waiting.set_result(said)
