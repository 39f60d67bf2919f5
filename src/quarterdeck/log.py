"""Logging with klog's verbosity numbers, which can change while the program runs.

The text of a line is constant, its facts are fields: `log.info("deployment applied", name=name)`. A
line for a higher verbosity names it: `log.v(4).info(...)`; below that verbosity it costs two
attribute reads, so a hot path may have it. Lines go to standard error, as text for people or JSON
for machines. Never log the data of a Secret, a token or a private key.

structlog renders text for people, and the lines of libraries. It is imported at the first such
line, not with this module: it takes longer than connecting to the API server. An operator in a
cluster writes JSON, and does not need it.
"""

import logging
import os
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO

import msgspec

from quarterdeck.terminal import visible, wants_colours

if TYPE_CHECKING:
    from structlog.typing import Processor

NORMAL, DEBUG, TRACE, TRACE_ALL = 2, 4, 6, 8

LogFormat = Literal["text", "json"]


class Logger(Protocol):
    """A logger: the usual methods, `v` for verbosity and `bind` for fields."""

    def info(self, event: str, **fields: Any) -> None:
        """Write a line about a normal event."""

    def warning(self, event: str, **fields: Any) -> None:
        """Write a line that an administrator should look at."""

    def error(self, event: str, **fields: Any) -> None:
        """Write a line about a failure."""

    def exception(self, event: str, **fields: Any) -> None:
        """Write a line about a failure, with the traceback of the current exception."""

    def bind(self, **fields: Any) -> "Logger":
        """The same logger with these fields on every line."""

    def v(self, verbosity: int) -> "Logger":
        """The same logger, silent unless the current verbosity is at least this one."""


class _Output:
    """The verbosity and the stream of the process, as in klog."""

    verbosity = NORMAL
    stream: TextIO | None = None
    fmt: LogFormat = "text"
    colours = False
    processors: "tuple[Processor, ...]" = ()
    """The processors of structlog; empty until the first line."""


class _LibraryFormatter(logging.Formatter):
    """Renders the lines of libraries like ours."""

    def __init__(self, fmt: LogFormat, *, colours: bool) -> None:
        super().__init__()
        self._style_of_ours = (fmt, colours)
        self._formatter: logging.Formatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        if self._formatter is None:
            _import_structlog()
            from structlog import stdlib

            fmt, colours = self._style_of_ours
            stamp, *rendered = _processors(fmt, colours=colours)
            self._formatter = stdlib.ProcessorFormatter(
                foreign_pre_chain=[stdlib.add_log_level, stamp],
                processors=[stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
            )
        return self._formatter.format(record)


class _SilentLogger:
    """A logger that drops lines above the current verbosity."""

    __slots__ = ()

    def _nothing(self, event: str, **fields: Any) -> None:
        """Drop the line."""

    info = warning = error = exception = _nothing

    def bind(self, **fields: Any) -> Logger:
        return self

    def v(self, verbosity: int) -> Logger:
        return self


_SILENT = _SilentLogger()


class _WritingLogger:
    """A logger that writes lines, each with its fields."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def info(self, event: str, **fields: Any) -> None:
        _write("info", event, self._fields | fields)

    def warning(self, event: str, **fields: Any) -> None:
        _write("warning", event, self._fields | fields)

    def error(self, event: str, **fields: Any) -> None:
        _write("error", event, self._fields | fields)

    def exception(self, event: str, **fields: Any) -> None:
        _write("error", event, {**self._fields, "exc_info": True, **fields})

    def bind(self, **fields: Any) -> Logger:
        return _WritingLogger(self._fields | fields)

    def v(self, verbosity: int) -> Logger:
        if verbosity > _Output.verbosity:
            return _SILENT
        return _WritingLogger(self._fields | {"v": verbosity})


def get_logger(name: str) -> Logger:
    """A logger with this name in the field `component`."""
    return _WritingLogger({"component": name})


def enabled(verbosity: int) -> bool:
    """Whether lines of this verbosity are written; check it before building an expensive line."""
    return verbosity <= _Output.verbosity


def verbosity() -> int:
    """The current verbosity."""
    return _Output.verbosity


def set_verbosity(new: int) -> None:
    """Write lines of up to this verbosity from now on."""
    _Output.verbosity = new


def configure(
    *, verbosity: int = NORMAL, fmt: LogFormat = "text", stream: TextIO | None = None
) -> None:
    """Write all lines to one stream, also those of libraries that use standard logging."""
    # A shell may have closed standard error; then the process writes there for as long as it runs.
    stream = stream or sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    set_verbosity(verbosity)
    _Output.stream = stream
    _Output.fmt = fmt
    _Output.colours = wants_colours(os.environ, terminal=stream.isatty())
    _Output.processors = ()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_LibraryFormatter(fmt, colours=_Output.colours))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)


def prepare() -> None:
    """Import the renderer now; without this call the first line does."""
    if not _Output.processors:
        _Output.processors = _processors(_Output.fmt, colours=_Output.colours)


def _processors(fmt: LogFormat, *, colours: bool) -> "tuple[Processor, ...]":
    return _add_time, _add_traceback, _renderer(fmt, colours=colours)


def _add_time(_logger: Any, _method: str, line: Any) -> Any:
    now = datetime.now(UTC)  # noqa: TID251 - a log has the time of its own machine
    line["timestamp"] = now.isoformat().replace("+00:00", "Z")
    return line


def _add_traceback(_logger: Any, _method: str, line: Any) -> Any:
    """Replace `exc_info`, an exception or True for the current one, by its traceback."""
    given = line.pop("exc_info", None)
    if isinstance(given, tuple):  # from standard logging
        given = given[1]
    error = given if isinstance(given, BaseException) else sys.exception() if given else None
    if error is not None:
        line["exception"] = "".join(traceback.format_exception(error)).rstrip("\n")
    return line


def _import_structlog() -> None:
    """Import structlog without rich, which would take twice as long as the rest.

    It imports rich for tracebacks, if it can; ours are texts already.
    """
    if "structlog" in sys.modules:
        return
    modules: dict[str, Any] = sys.modules
    rich = modules.get("rich")
    modules["rich"] = None
    try:
        import structlog.dev  # noqa: F401
    finally:
        del modules["rich"]
        if rich is not None:
            modules["rich"] = rich


def _renderer(fmt: LogFormat, *, colours: bool) -> "Processor":
    """The processor that renders the fields of a line."""
    if fmt == "text":
        _import_structlog()
        from structlog.dev import ConsoleRenderer

        console = ConsoleRenderer(colors=colours)

        def show(logger: Any, method: str, line: Any) -> Any:
            return console(logger, method, {k: _visible(k, v) for k, v in line.items()})

        return show
    encoder = msgspec.json.Encoder(enc_hook=str)

    def render(_logger: Any, _method: str, line: Any) -> str:
        return encoder.encode(line).decode()

    return render


def _visible(field: str, value: Any) -> Any:
    """The value, safe for a terminal; a traceback keeps its lines."""
    return visible(value, lines=field == "exception") if isinstance(value, str) else value


def _write(level: str, event: str, fields: dict[str, Any]) -> None:
    """Render one line and write it in one call, so that lines never mix."""
    if _Output.stream is None:
        configure(verbosity=_Output.verbosity)
    prepare()
    line: Any = {"event": event, "level": level, **fields}
    for processor in _Output.processors:
        line = processor(None, level, line)
    stream = _Output.stream or sys.stderr
    # The disk may be full, or the reader gone: what is told about goes on all the same.
    with suppress(OSError):
        stream.write(f"{line}\n")
        stream.flush()
