"""Logging with klog's verbosity numbers, changeable while the program runs.

A line is constant and its facts are fields: `log.info("deployment applied", name=name)`.
A line that only some readers want says at which verbosity it speaks: `log.v(4).info(...)`;
below that verbosity it costs two attribute reads, so it may stand in a hot path.
Lines go to standard error, as text for people or JSON for machines. Never hand a Secret's
data, a token or a private key to a logger.
"""

import logging
import sys
from typing import Any, Literal, Protocol, TextIO

import msgspec
import structlog

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
    processors: tuple[structlog.typing.Processor, ...] = ()


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
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    renderer = _renderer(fmt, colours=stream.isatty())
    _Output.stream = stream
    _Output.processors = (stamp, structlog.processors.format_exc_info, renderer)
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_log_level, stamp],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)


def _renderer(fmt: LogFormat, *, colours: bool) -> structlog.typing.Processor:
    """What turns a line's fields into the line."""
    if fmt == "text":
        return structlog.dev.ConsoleRenderer(colors=colours)
    encoder = msgspec.json.Encoder(enc_hook=str)

    def render(_logger: Any, _method: str, line: Any) -> str:
        return encoder.encode(line).decode()

    return render


def _write(level: str, event: str, fields: dict[str, Any]) -> None:
    """Render one line and write it in one call, so that lines never mix."""
    if not _Output.processors:
        configure(verbosity=_Output.verbosity)
    line: Any = {"event": event, "level": level, **fields}
    for processor in _Output.processors:
        line = processor(None, level, line)
    stream = _Output.stream or sys.stderr
    stream.write(f"{line}\n")
    stream.flush()
