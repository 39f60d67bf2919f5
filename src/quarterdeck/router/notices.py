"""Passes HAProxy's notices on to the router's own output."""

import asyncio
import re
import sys
from contextlib import suppress

_BACKEND_STOPPED = re.compile(rb"Proxy \S+:\S+:\S+ stopped ")
"""At a reload there is such a line for each backend: thousands, which say nothing."""


async def pass_on(notices: asyncio.StreamReader) -> None:
    """Copy lines to standard error until HAProxy closes its own.

    Whatever happens, the pipe is read: HAProxy would wait for room in it.
    """
    while True:
        try:
            line = await notices.readline()
        except ValueError:  # A line that is too long; the reader has dropped it.
            continue
        if not line:
            return
        if not _BACKEND_STOPPED.search(line):
            with suppress(OSError):
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()
