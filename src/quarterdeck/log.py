"""Logging with klog's verbosity numbers, changeable while the program runs.

A line is constant and its facts are fields: `log.info("deployment applied", name=name)`.
A line that only some readers want says at which verbosity it speaks: `log.v(4).info(...)`;
below that verbosity it costs two attribute reads, so it may stand in a hot path.
Lines go to standard error, as text for people or JSON for machines. Never hand a Secret's
data, a token or a private key to a logger.

structlog renders the lines. It is imported for the first line, not with this module: it brings
rich with it, which takes longer to import than a program needs to connect to its API server.
"""

import logging
import os
import sys
from typing import TYPE_CHECKING, Any, Literal, Protocol, TextIO

import msgspec

from quarterdeck.terminal import visible, wants_colours

if TYPE_CHECKING:
    from structlog.typing import Processor

NORMAL, DEBUG, TRACE, TRACE_ALL = 2, 4, 6, 8

LogFormat = Literal["text", "json"]


class Logger(Protocol):
    """What `get_logger` gives: the usual methods, `v` for verbosity and `bind` for fields."""

    def info(self, event: str, **fields: Any) -> None:
        """Write a line about something that went as it should."""

    def warning(self, event: str, **fields: Any) -> None:
        """Write a line about something that a person may want to look at."""

    def error(self, event: str, **fields: Any) -> None:
        """Write a line about something that failed."""

    def exception(self, event: str, **fields: Any) -> None:
        """Write a line about something that failed, with the traceback in flight."""

    def bind(self, **fields: Any) -> "Logger":
        """The same logger with these fields on every line."""

    def v(self, verbosity: int) -> "Logger":
        """The same logger, silent unless the current verbosity is at least this one."""


class _Output:
    """The process's one verbosity and one stream of lines. They are process-wide, as in klog."""

    verbosity = NORMAL
    stream: TextIO | None = None
    fmt: LogFormat = "text"
    colours = False
    processors: "tuple[Processor, ...]" = ()
    """What a line goes through; empty until it is needed."""


class _LibraryLines(logging.Formatter):
    """Renders the lines of libraries as ours."""

    def __init__(self, fmt: LogFormat, *, colours: bool) -> None:
        super().__init__()
        self._style_of_ours = (fmt, colours)
        self._formatter: logging.Formatter | None = None

    def format(self, record: logging.LogRecord) -> str:
        if self._formatter is None:
            from structlog import stdlib

            fmt, colours = self._style_of_ours
            stamp, *rendered = _processors(fmt, colours=colours)
            self._formatter = stdlib.ProcessorFormatter(
                foreign_pre_chain=[stdlib.add_log_level, stamp],
                processors=[stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
            )
        return self._formatter.format(record)


class _Silent:
    """A logger for lines that nobody wants at the current verbosity."""

    __slots__ = ()

    def _nothing(self, event: str, **fields: Any) -> None:
        """Drop the line."""

    info = warning = error = exception = _nothing

    def bind(self, **fields: Any) -> Logger:
        return self

    def v(self, verbosity: int) -> Logger:
        return self


_SILENT = _Silent()


class _Speaking:
    """A logger that writes, with the fields that each of its lines carries."""

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
        return _Speaking(self._fields | fields)

    def v(self, verbosity: int) -> Logger:
        if verbosity > _Output.verbosity:
            return _SILENT
        return _Speaking(self._fields | {"v": verbosity})


def get_logger(name: str) -> Logger:
    """A logger whose lines carry this name."""
    return _Speaking({"component": name})


def enabled(verbosity: int) -> bool:
    """Whether lines of this verbosity are written now; ask before building a costly one."""
    return verbosity <= _Output.verbosity


def verbosity() -> int:
    """The verbosity now in force."""
    return _Output.verbosity


def set_verbosity(new: int) -> None:
    """Let lines of up to this verbosity through, from the next line on."""
    _Output.verbosity = new


def configure(
    *, verbosity: int = NORMAL, fmt: LogFormat = "text", stream: TextIO | None = None
) -> None:
    """Send all lines, those of libraries on the standard logging too, to one stream."""
    stream = stream or sys.stderr
    set_verbosity(verbosity)
    _Output.stream = stream
    _Output.fmt = fmt
    _Output.colours = wants_colours(os.environ, terminal=stream.isatty())
    _Output.processors = ()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_LibraryLines(fmt, colours=_Output.colours))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)


def prepare() -> None:
    """Import what renders lines, where there is time for it; the first line does so otherwise."""
    if not _Output.processors:
        _Output.processors = _processors(_Output.fmt, colours=_Output.colours)


def _processors(fmt: LogFormat, *, colours: bool) -> "tuple[Processor, ...]":
    from structlog.processors import TimeStamper, format_exc_info

    stamp = TimeStamper(fmt="iso", utc=True)
    return stamp, format_exc_info, _renderer(fmt, colours=colours)


def _renderer(fmt: LogFormat, *, colours: bool) -> "Processor":
    """What turns a line's fields into the line."""
    if fmt == "text":
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
    """The value as a terminal may get it; a traceback keeps its lines."""
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
    stream.write(f"{line}\n")
    stream.flush()
