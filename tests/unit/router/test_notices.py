"""HAProxy's notices are read to their end, whatever they are: else the pipe would be full."""

import asyncio
import io
from types import SimpleNamespace

import pytest

from quarterdeck.router import notices

LIMIT = 1 << 10


def said(data: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=LIMIT)
    reader.feed_data(data)
    reader.feed_eof()
    return reader


async def test_a_line_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.BytesIO()
    monkeypatch.setattr(notices, "sys", SimpleNamespace(stderr=SimpleNamespace(buffer=output)))
    long = b"x" * (3 * LIMIT)
    await notices.pass_on(said(b"before\n" + long + b"\nProxy a:b:c stopped (1)\nafter\n"))
    assert output.getvalue() == b"before\nafter\n"


async def test_an_output_that_is_gone_does_not_stop_the_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Gone(io.BytesIO):
        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(notices, "sys", SimpleNamespace(stderr=SimpleNamespace(buffer=Gone())))
    reader = said(b"one\ntwo\n")
    await notices.pass_on(reader)
    assert reader.at_eof()
