"""Logging with klog's verbosity numbers, changeable while the program runs.

A line is constant and its facts are fields: `log.info("deployment applied", name=name)`.
A line that only some readers want says at which verbosity it speaks: `log.v(4).info(...)`.
Lines go to standard error, as text for people or JSON for machines. Never hand a Secret's
data, a token or a private key to a logger.
"""

import logging
import sys
from typing import Any, Literal, Protocol, TextIO

import structlog

NORMAL, DEBUG, TRACE, TRACE_ALL = 2, 4, 6, 8

LogFormat = Literal["text", "json"]


class Logger(Protocol):
    """What `get_logger` gives: the usual methods, `v` for verbosity and `bind` for fields."""

    def info(self, event: str, **fields: Any) -> Any:
        """Write a line about something that went as it should."""

    def warning(self, event: str, **fields: Any) -> Any:
        """Write a line about something that a person may want to look at."""

    def error(self, event: str, **fields: Any) -> Any:
        """Write a line about something that failed."""

    def exception(self, event: str, **fields: Any) -> Any:
        """Write a line about something that failed, with the traceback in flight."""

    def bind(self, **fields: Any) -> "Logger":
        """The same logger with these fields on every line."""

    def v(self, verbosity: int) -> "Logger":
        """The same logger, silent unless the current verbosity is at least this one."""


class _Verbosity:
    """The process's one current verbosity. It is process-wide, as in klog."""

    current = NORMAL


class _Silent:
    """A logger for lines that nobody wants at the current verbosity."""

    def _nothing(self, event: str, **fields: Any) -> None:
        """Drop the line."""

    info = warning = error = exception = _nothing

    def bind(self, **fields: Any) -> "_Silent":
        return self

    def v(self, verbosity: int) -> Logger:
        return self


_SILENT = _Silent()


class _BoundLogger(structlog.BoundLoggerBase):
    """structlog's bound logger, with the methods of `Logger` and nothing else."""

    def info(self, event: str, **fields: Any) -> Any:
        return self._proxy_to_logger("msg", event, level="info", **fields)

    def warning(self, event: str, **fields: Any) -> Any:
        return self._proxy_to_logger("msg", event, level="warning", **fields)

    def error(self, event: str, **fields: Any) -> Any:
        return self._proxy_to_logger("msg", event, level="error", **fields)

    def exception(self, event: str, **fields: Any) -> Any:
        return self._proxy_to_logger("msg", event, level="error", exc_info=True, **fields)

    def v(self, verbosity: int) -> Logger:
        return self.bind(v=verbosity) if enabled(verbosity) else _SILENT


def get_logger(name: str) -> Logger:
    """A logger whose lines carry this name."""
    logger: Logger = structlog.wrap_logger(None, wrapper_class=_BoundLogger, component=name)
    return logger


def enabled(verbosity: int) -> bool:
    """Whether lines of this verbosity are written now; ask before building a costly one."""
    return verbosity <= _Verbosity.current


def verbosity() -> int:
    """The verbosity now in force."""
    return _Verbosity.current


def set_verbosity(new: int) -> None:
    """Let lines of up to this verbosity through, from the next line on."""
    _Verbosity.current = new


def configure(
    *, verbosity: int = NORMAL, fmt: LogFormat = "text", stream: TextIO | None = None
) -> None:
    """Send all lines, those of libraries on the standard logging too, to one stream."""
    stream = stream or sys.stderr
    set_verbosity(verbosity)
    stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if fmt == "json"
        else structlog.dev.ConsoleRenderer(colors=stream.isatty())
    )
    structlog.configure(
        processors=[stamp, structlog.processors.format_exc_info, renderer],
        logger_factory=structlog.WriteLoggerFactory(stream),
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_log_level, stamp],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
