"""Verbosity, formats and the way from the standard logging."""

import errno
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from quarterdeck import log as logs


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Leave the process's logging as it was found."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    verbosity, stream, processors = (
        logs._Output.verbosity,
        logs._Output.stream,
        logs._Output.processors,
    )
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logs._Output.verbosity = verbosity
    logs._Output.stream, logs._Output.processors = stream, processors


def json_lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_carries_its_fields_and_those_of_its_logger() -> None:
    """Bound fields and the line's own stand side by side, with level, name and time."""
    stream = io.StringIO()
    logs.configure(fmt="json", stream=stream)
    logs.get_logger("kube.client").bind(cluster="a").info("applied", name="x", n=3)
    (line,) = json_lines(stream)
    assert str(line.pop("timestamp")).endswith("Z")
    assert line == {
        "event": "applied",
        "level": "info",
        "component": "kube.client",
        "cluster": "a",
        "name": "x",
        "n": 3,
    }


@pytest.mark.parametrize(
    ("verbosity", "written"),
    [
        pytest.param(2, ["always"], id="normal hides debug and trace"),
        pytest.param(4, ["always", "debug"], id="debug hides trace"),
        pytest.param(6, ["always", "debug", "trace"], id="trace shows all"),
    ],
)
def test_verbosity_decides_which_lines_are_written(verbosity: int, written: list[str]) -> None:
    stream = io.StringIO()
    logs.configure(fmt="json", stream=stream, verbosity=verbosity)
    log = logs.get_logger("t")
    log.info("always")
    log.v(4).bind(x=1).info("debug")
    log.v(6).info("trace")
    assert [line["event"] for line in json_lines(stream)] == written


def test_verbosity_changes_live_for_loggers_that_exist() -> None:
    """A logger that was made at one verbosity obeys the next one from its next line on."""
    stream = io.StringIO()
    logs.configure(fmt="json", stream=stream, verbosity=2)
    log = logs.get_logger("t")
    log.v(4).info("before")
    logs.set_verbosity(4)
    log.v(4).info("after")
    assert [line["event"] for line in json_lines(stream)] == ["after"]
    assert logs.verbosity() == 4
    assert logs.enabled(4)
    assert not logs.enabled(5)


def test_an_exception_is_written_with_its_traceback_on_one_json_line() -> None:
    stream = io.StringIO()
    logs.configure(fmt="json", stream=stream)
    try:
        raise ValueError("a bad day")
    except ValueError:
        logs.get_logger("t").exception("failed")
    (line,) = json_lines(stream)
    assert "ValueError: a bad day" in str(line["exception"])


def test_json_needs_no_renderer_that_takes_long_to_import() -> None:
    """Also with a traceback: it is most of what an operator's first line would cost."""
    program = (
        "import sys, quarterdeck.log as logs\n"
        "logs.configure(fmt='json')\n"
        "logs.get_logger('t').error('failed', exc_info=ValueError('a bad day'))\n"
        "sys.exit(any(name in sys.modules for name in ('structlog', 'rich')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert b"ValueError: a bad day" in done.stderr


def test_a_value_that_json_does_not_know_is_written_as_text() -> None:
    stream = io.StringIO()
    logs.configure(fmt="json", stream=stream)
    logs.get_logger("t").info("odd", error=ValueError("x"), path={"a": object})
    (line,) = json_lines(stream)
    assert line["error"] == "x"


@pytest.mark.parametrize("fmt", ["json", "text"])
def test_lines_of_the_standard_logging_go_to_the_same_stream(fmt: logs.LogFormat) -> None:
    stream = io.StringIO()
    logs.configure(fmt=fmt, stream=stream)
    logging.getLogger("a.library").warning("something %s", "odd")
    assert "something odd" in stream.getvalue()
    assert "warning" in stream.getvalue()


def test_text_is_for_people() -> None:
    """One line with the event and name=value pairs, and no colours where nobody sees them."""
    stream = io.StringIO()
    logs.configure(fmt="text", stream=stream)
    logs.get_logger("t").info("deployment applied", deployment="ns/x")
    (line,) = stream.getvalue().splitlines()
    assert "deployment applied" in line
    assert "deployment=ns/x" in line
    assert "\x1b" not in line


def test_text_is_written_without_rich_and_rich_can_be_used_all_the_same() -> None:
    """structlog would import it for tracebacks; ours are texts, and look as without it."""
    script = (
        "import sys\n"
        "from quarterdeck.log import configure, get_logger\n"
        "configure(fmt='text')\n"
        "try:\n"
        "    raise ValueError('odd')\n"
        "except ValueError:\n"
        "    get_logger('x').exception('failed')\n"
        "assert not [name for name in sys.modules if name.startswith('rich')]\n"
        "import rich.console\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "ValueError: odd" in done.stderr


UNWRITABLE = """
import resource, sys
from quarterdeck.log import configure, get_logger

configure()
log = get_logger("a")
log.warning("first")

def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before = megabytes()
for number in range(20_000):
    log.warning("x" * 1000)
print("went on", megabytes() - before < 10)
"""


@pytest.mark.parametrize("output", ["a full disk", "a reader that is gone"])
def test_a_log_that_cannot_be_written_ends_nothing(output: str) -> None:
    """Neither what is told about, nor the memory: 20 MB are lost here."""
    if output == "a full disk":
        stream = os.open("/dev/full", os.O_WRONLY)
    else:
        reader, stream = os.pipe()
        os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-c", UNWRITABLE], stdout=subprocess.PIPE, stderr=stream, check=False
        )
    finally:
        os.close(stream)
    assert done.stdout == b"went on True\n"


def test_without_standard_error_there_is_no_log() -> None:
    """As after `2>&-` in a shell."""
    code = "from quarterdeck.log import *; configure(); get_logger('a').info('b'); print('went on')"
    words = ["/bin/sh", "-c", f'exec {sys.executable} -c "$0" 2>&-', code]
    assert subprocess.run(words, capture_output=True, check=True).stdout == b"went on\n"


def test_when_there_is_room_again_lines_are_whole() -> None:
    class Disk(io.StringIO):
        full = True

        def flush(self) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, "full")

    stream = Disk()
    logs.configure(fmt="json", stream=stream)
    logs.get_logger("a").info("lost, or written late")
    stream.full = False
    logs.get_logger("a").info("later")
    assert json_lines(stream)[-1]["event"] == "later"
