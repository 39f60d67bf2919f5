"""Logs: what is asked for, what was written, what is read back."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.localcluster.node.log_query import BadQueryError, Query, parse_query
from quarterdeck.localcluster.node.logs import LogWriter, files, read

T0 = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


async def output(path: Path, query: Query, live: LogWriter | None = None) -> bytes:
    return b"".join([chunk async for chunk in read(path, query, at(10), live)])


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    """A log of ten lines, one a second."""
    writer = LogWriter(tmp_path / "0.log")
    for second in range(10):
        writer.feed("stderr" if second == 4 else "stdout", b"line %d\n" % second, at(second))
    writer.close()
    return writer.path


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        pytest.param({}, b"".join(b"line %d\n" % n for n in range(10)), id="all of it"),
        pytest.param({"tailLines": "2"}, b"line 8\nline 9\n", id="the last lines"),
        pytest.param({"tailLines": "0"}, b"", id="no lines"),
        pytest.param({"sinceSeconds": "2"}, b"line 8\nline 9\n", id="the last seconds"),
        pytest.param(
            {"sinceTime": "2026-03-01T12:00:09Z"}, b"line 9\n", id="since a point in time"
        ),
        pytest.param({"limitBytes": "10"}, b"line 0\nlin", id="so many bytes and no more"),
        pytest.param(
            {"tailLines": "1", "timestamps": "true"},
            b"2026-03-01T12:00:09.000000000Z line 9\n",
            id="with the time of each line",
        ),
        pytest.param({"stream": "Stderr"}, b"line 4\n", id="one stream"),
        pytest.param({"follow": "true", "tailLines": "1"}, b"line 9\n", id="follow what has ended"),
    ],
)
async def test_queries(ten: Path, parameters: dict[str, str], expected: bytes) -> None:
    assert await output(ten, parse_query(parameters)) == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"colour": "red"}, "colour: 'red': this node understands only follow"),
        ({"tailLines": "-1"}, "tailLines: '-1': say a whole number"),
        ({"limitBytes": "0"}, "limitBytes: '0': say a whole number above zero"),
        ({"follow": "maybe"}, "follow: 'maybe': say true or false"),
        ({"sinceTime": "noon"}, "sinceTime: 'noon': say a time such as"),
        ({"stream": "x"}, "stream: 'x': say one of All, Stdout, Stderr"),
    ],
)
def test_other_queries_are_refused(parameters: dict[str, str], message: str) -> None:
    with pytest.raises(BadQueryError) as error:
        parse_query(parameters)
    assert message in str(error.value)


@given(st.lists(st.binary(max_size=40_000), max_size=4))
async def test_what_was_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]
) -> None:
    """However it is cut, long lines included; only a last newline is added."""
    writer = LogWriter(tmp_path_factory.mktemp("log") / "0.log")
    for chunk in chunks:
        writer.feed("stdout", chunk)
    writer.close()
    written = b"".join(chunks)
    if written and not written.endswith(b"\n"):
        written += b"\n"
    assert await output(writer.path, Query()) == written


async def test_rotation_keeps_five_files(tmp_path: Path) -> None:
    """The oldest lines go; what is left is in order."""
    writer = LogWriter(tmp_path / "0.log", max_bytes=1_000)
    for number in range(1_000):
        writer.feed("stdout", b"%d\n" % number)
    writer.close()
    assert len(files(writer.path)) == 5
    lines = [int(line) for line in (await output(writer.path, Query())).split()]
    assert lines == list(range(lines[0], 1_000))
    assert all(path.stat().st_size <= 1_000 for path in files(writer.path))


async def test_following_sees_every_line_across_rotations_and_ends_with_the_log(
    tmp_path: Path,
) -> None:
    writer = LogWriter(tmp_path / "0.log", max_bytes=2_000)
    reader = asyncio.create_task(output(writer.path, Query(follow=True), writer))
    for number in range(200):
        writer.feed("stdout", b"line %d\n" % number)
        await asyncio.sleep(0)
        if number % 20 == 0:
            await asyncio.sleep(0.005)
    writer.feed("stdout", b"no newline")
    writer.close()
    text = await asyncio.wait_for(reader, 10)
    assert text.decode().splitlines() == [*(f"line {n}" for n in range(200)), "no newline"]


def test_log_files_are_closed_to_others(ten: Path) -> None:
    assert ten.stat().st_mode & 0o077 == 0
