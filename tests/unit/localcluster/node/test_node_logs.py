"""Logs: what is asked for, what was written, what is read back."""

import asyncio
import resource
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.localcluster.node.logs.query import BadQueryError, LogQuery, parse_query
from quarterdeck.localcluster.node.logs.reader import BATCH, read
from quarterdeck.localcluster.node.logs.writer import LogWriter, files

T0 = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


async def output(path: Path, query: LogQuery, live: LogWriter | None = None) -> bytes:
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
        ({"tailLines": "-1"}, "tailLines: '-1': use a whole number"),
        ({"limitBytes": "0"}, "limitBytes: '0': use a whole number above zero"),
        ({"follow": "maybe"}, "follow: 'maybe': use true or false"),
        ({"sinceTime": "noon"}, "sinceTime: 'noon': use a time such as"),
        ({"stream": "x"}, "stream: 'x': use one of All, Stdout, Stderr"),
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
    assert await output(writer.path, LogQuery()) == written


async def test_rotation_keeps_five_files(tmp_path: Path) -> None:
    """The oldest lines go; what is left is in order."""
    writer = LogWriter(tmp_path / "0.log", max_bytes=1_000)
    for number in range(1_000):
        writer.feed("stdout", b"%d\n" % number)
    writer.close()
    assert len(files(writer.path)) == 5
    lines = [int(line) for line in (await output(writer.path, LogQuery())).split()]
    assert lines == list(range(lines[0], 1_000))
    assert all(path.stat().st_size <= 1_000 for path in files(writer.path))


async def test_following_sees_every_line_across_rotations_and_ends_with_the_log(
    tmp_path: Path,
) -> None:
    writer = LogWriter(tmp_path / "0.log", max_bytes=2_000)
    reader = asyncio.create_task(output(writer.path, LogQuery(follow=True), writer))
    for number in range(200):
        writer.feed("stdout", b"line %d\n" % number)
        await asyncio.sleep(0)
        if number % 20 == 0:
            await asyncio.sleep(0.005)
    writer.feed("stdout", b"no newline")
    writer.close()
    text = await asyncio.wait_for(reader, 10)
    assert text.decode().splitlines() == [*(f"line {n}" for n in range(200)), "no newline"]


async def test_a_reader_gets_what_was_there_when_it_came_however_slow_it_is(tmp_path: Path) -> None:
    """All files are rotated out meanwhile, and a writer that is faster does not hold it up."""
    writer = LogWriter(tmp_path / "0.log", max_bytes=100_000)
    there = [b"line %d\n" % number for number in range(3 * BATCH)]
    writer.feed("stdout", b"".join(there))
    got = []
    async for chunk in read(writer.path, LogQuery(), at(10), writer):
        got.append(chunk)
        writer.feed("stdout", b"later" * 1_000 + b"\n")
    writer.close()
    assert got == there


async def test_reading_a_large_log_takes_little_memory(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "0.log")
    writer.feed("stdout", b"0123456789\n" * 20_000)
    writer.close()
    tracemalloc.start()
    try:
        lines = 0
        async for _ in read(writer.path, LogQuery(), at(10), None):
            lines += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert lines == 20_000
    assert writer.path.stat().st_size > 1_000_000
    assert peak < 500_000


@pytest.mark.parametrize("turns", range(6))
async def test_a_follower_misses_no_line_whenever_it_comes(tmp_path: Path, turns: int) -> None:
    """Also in the very turn of the event loop in which the follower has read all there was."""
    writer = LogWriter(tmp_path / "0.log")
    got: list[bytes] = []
    all_there = asyncio.Event()

    async def follow() -> None:
        async for chunk in read(writer.path, LogQuery(follow=True), at(10), writer):
            got.append(chunk)
            if chunk == b"two\n":
                all_there.set()

    def feed_later(turns: int) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(feed_later, turns - 1)
        else:
            writer.feed("stdout", b"two\n")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(follow())
        # Until it has read the empty log and waits.
        while not writer.change._waiters:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        writer.feed("stdout", b"one\n")
        feed_later(turns)
        async with asyncio.timeout(10):
            await all_there.wait()
        writer.close()
    assert got == [b"one\n", b"two\n"]


def test_log_files_are_closed_to_others(ten: Path) -> None:
    assert ten.stat().st_mode & 0o077 == 0


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file of this process may grow beyond this: as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_without_room_lines_are_lost_whole_and_it_is_told_once(tmp_path: Path) -> None:
    """What was there stays readable; with room again the log goes on, and says what is missing."""
    told: list[str] = []
    writer = LogWriter(
        tmp_path / "0.log", trouble=lambda reason, note: told.append(f"{reason}: {note}")
    )
    writer.feed("stdout", b"first\n", at(0))
    size = writer.path.stat().st_size
    with room_for(size + 20):
        writer.feed("stdout", b"lost\n", at(1))
        writer.feed("stdout", b"lost too\n" * 1000, at(2))
        assert writer.path.stat().st_size == size, "not half a line"
        assert await output(writer.path, LogQuery()) == b"first\n"
    assert told == ["LogsLost: its output is lost until there is room: File too large"]
    writer.feed("stdout", b"last\n", at(3))
    writer.close()
    assert await output(writer.path, LogQuery()) == b"first\nlast\n"
    assert told[1].startswith("LogsResumed: its output is kept again; ")


async def test_a_line_that_was_spoilt_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    whole = b"2026-03-01T12:00:00.000000000Z stdout F %s\n"
    path.write_bytes(whole % b"one" + b"2026-03-01T12:00\n\0\0\0 \0 \0 \0\n" + whole % b"two")
    assert await output(path, LogQuery()) == b"one\ntwo\n"


async def test_a_rotation_that_fails_loses_no_older_file(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "0.log", max_bytes=100)
    for number in range(6):
        writer.feed("stdout", b"%d" % number + b"x" * 60 + b"\n", at(number))
    before = {path.name: path.read_bytes() for path in files(writer.path)}
    (tmp_path / "0.log.new").mkdir()
    for _ in range(9):
        writer.feed("stdout", b"lost" + b"x" * 60 + b"\n", at(9))
    assert {path.name: path.read_bytes() for path in files(writer.path)} == before
    (tmp_path / "0.log.new").rmdir()
    writer.feed("stdout", b"kept\n", at(10))
    writer.close()
    assert (await output(writer.path, LogQuery())).endswith(b"kept\n")


@pytest.mark.parametrize(
    "parameters",
    [
        {"sinceSeconds": str(2**63 - 1)},
        {"sinceTime": "0001-01-01T00:00:00+14:00"},
        {"sinceTime": "0999-01-01T00:00:00Z"},
    ],
)
def test_a_time_before_all_lines_asks_for_all(parameters: dict[str, str]) -> None:
    now = datetime(2026, 3, 1, tzinfo=UTC)
    assert parse_query(parameters).start(now) < "2026-03-01T00:00:00.000000000Z"
