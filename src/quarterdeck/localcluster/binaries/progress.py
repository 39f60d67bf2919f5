"""Shows the current step, its progress and its time on standard error.

On a terminal one line changes; elsewhere there is a line for each step, and one every 15 seconds
during a step.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

HEARTBEAT_SECONDS = 15.0


class Progress(Protocol):
    """Receives the progress of one step at a time; `update` is cheap."""

    def say(self, line: str) -> None:
        """Show a line that stays."""

    def begin(self, step: str) -> None:
        """Show that a step has begun."""

    def update(self, detail: str, fraction: float | None = None) -> None:
        """Show the progress of the step; call it often, also without a change."""

    def end(self, result: str = "") -> None:
        """Show that the step has ended, and its result."""


class LineProgress:
    """Shows progress as lines, for logs and pipes."""

    def __init__(
        self,
        stream: TextIO,
        clock: Callable[[], float] = time.monotonic,
        every: float = HEARTBEAT_SECONDS,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._every = every
        self._step = ""
        self._started = self._shown = clock()

    def say(self, line: str) -> None:
        """Write the line."""
        self._stream.write(f"{line}\n")
        self._stream.flush()
        self._shown = self._clock()

    def begin(self, step: str) -> None:
        """Write the step's name."""
        self._step = step
        self._started = self._clock()
        self.say(step)

    def update(self, detail: str, fraction: float | None = None) -> None:
        """Write a line if the last one is old enough."""
        if self._clock() - self._shown >= self._every:
            self.say(_joined(self._step, detail, self._elapsed()))

    def end(self, result: str = "") -> None:
        """Write the result of the step, if there is one."""
        if result:
            self.say(_joined(result, "", self._elapsed()))

    def _elapsed(self) -> str:
        return duration(self._clock() - self._started)


class TerminalProgress:
    """Shows progress as one live line with a bar, for a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: RichProgress | None = None
        self._task: TaskID | None = None
        self._started = time.monotonic()

    def say(self, line: str) -> None:
        """Show the line above the live one."""
        if self._live is None:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        else:
            self._live.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def begin(self, step: str) -> None:
        """Start the live line."""
        # rich takes a tenth of a second to import, so it is imported at the first step.
        from rich import progress
        from rich.console import Console
        from rich.table import Column

        self._started = time.monotonic()
        self._live = progress.Progress(
            progress.SpinnerColumn(table_column=Column(no_wrap=True)),
            # A long step takes several lines; the others keep their places.
            progress.TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(no_wrap=False, overflow="fold"),
            ),
            progress.BarColumn(bar_width=20, table_column=Column(no_wrap=True)),
            progress.TextColumn("{task.fields[detail]}", style="dim", markup=False),
            progress.TimeElapsedColumn(table_column=Column(no_wrap=True)),
            console=Console(file=self._stream),
            transient=True,
        )
        self._live.start()
        self._task = self._live.add_task(step, total=None, detail="")

    def update(self, detail: str, fraction: float | None = None) -> None:
        """Move the bar."""
        if self._live is not None and self._task is not None:
            total = None if fraction is None else 1.0
            self._live.update(self._task, detail=detail, completed=fraction or 0.0, total=total)

    def end(self, result: str = "") -> None:
        """Replace the live line by the result of the step."""
        if self._live is not None:
            self._live.stop()
        self._live = self._task = None
        if result:
            self.say(_joined(result, "", duration(time.monotonic() - self._started)))


@contextmanager
def step(progress: Progress, name: str, result: str = "") -> Iterator[None]:
    """Show the block as one step; the result is shown only if the block succeeds."""
    progress.begin(name)
    try:
        yield
    except BaseException:
        progress.end()
        raise
    progress.end(result)


def progress_on(stream: TextIO | None = None) -> Progress:
    """The progress display for a stream, by default standard error."""
    stream = stream or sys.stderr
    return TerminalProgress(stream) if stream.isatty() else LineProgress(stream)


def duration(seconds: float) -> str:
    """A duration in a short form: `4 s`, `2 m 05 s`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} m {rest:02} s" if minutes else f"{rest} s"


def size(count: float) -> str:
    """A number of bytes in megabytes or gigabytes."""
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def _joined(step: str, detail: str, elapsed: str) -> str:
    return f"{step}: {detail}, {elapsed}" if detail else f"{step}, {elapsed}"
