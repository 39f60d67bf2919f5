"""Showing one step after the other, each with the time it takes, until all are done."""

from quarterdeck.localcluster.binaries import Progress, progress_on


class Steps:
    """Call it with what is being done now; leave its `with` when all is done."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress or progress_on()
        self._current = ""

    def __call__(self, step: str) -> None:
        """Show this step, unless it is shown already."""
        if step == self._current:
            self._progress.update("")
            return
        self.done()
        self._progress.begin(step)
        self._current = step

    def done(self) -> None:
        """Show that no step is under way."""
        if self._current:
            self._progress.end()
        self._current = ""

    def __enter__(self) -> "Steps":
        """Nothing is shown until the first step."""
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the terminal as it was."""
        self.done()
