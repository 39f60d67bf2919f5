"""Passes HAProxy's notices on to the router's own output."""

import asyncio
import re
import sys

_BACKEND_STOPPED = re.compile(rb"Proxy \S+:\S+:\S+ stopped ")
"""At a reload there is such a line for each backend: thousands, which say nothing."""


async def pass_on(notices: asyncio.StreamReader) -> None:
    """Copy lines to standard error until HAProxy closes its own."""
    while line := await notices.readline():
        if not _BACKEND_STOPPED.search(line):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
