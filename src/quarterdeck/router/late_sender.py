"""Sends lines to rsyslog's stream socket beside HAProxy, and asks it what has arrived."""

import asyncio
import secrets
from contextlib import suppress

from quarterdeck.haproxy.sidecar import CANARY_TAG, Returned
from quarterdeck.router.last_lines import LATE, framed
from quarterdeck.router.way_back import WayBack

ANSWER_TIMEOUT = 2.0
"""Seconds in which a canary comes back."""
_RETRY_INTERVAL = 0.2


class LateSender:
    """A connection to rsyslog, made when it is needed."""

    def __init__(self, address: str, way_back: WayBack, give_up_after: float) -> None:
        self._address = address
        self._give_up_after = give_up_after
        self._way_back = way_back
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, lines: list[bytes]) -> bool:
        """Send lines, also to an rsyslog that is just away; return whether it took them."""
        if not lines:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._give_up_after):
                while True:
                    with suppress(OSError):
                        await self._write(framed(lines))
                        return True
                    self.close()
                    await asyncio.sleep(_RETRY_INTERVAL)
        return False

    async def ask(self) -> Returned | None:
        """What rsyslog has counted; None if it does not say."""
        name = secrets.token_hex(8)
        # rsyslog does not use the time of a canary.
        message = LATE + f"Jan  1 00:00:00 router {CANARY_TAG}: {name}".encode()
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                with self._way_back.expecting(name) as returned:
                    await self._write(framed([message]))
                    return await returned
        except (OSError, TimeoutError):
            self.close()
            return None

    def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    async def _write(self, data: bytes) -> None:
        if self._writer is None:
            _, self._writer = await asyncio.open_unix_connection(self._address)
        self._writer.write(data)
        await self._writer.drain()
