"""Shows one step after another, each with its time."""

from quarterdeck.localcluster.binaries import Progress, progress_on


class Steps:
    """A context; call it with each new step."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress or progress_on()
        self._current = ""

    def __call__(self, step: str) -> None:
        """Show this step; do nothing if it is shown already."""
        if step == self._current:
            self._progress.update("")
            return
        self.done()
        self._progress.begin(step)
        self._current = step

    def done(self) -> None:
        """Show that the current step has ended."""
        if self._current:
            self._progress.end()
        self._current = ""

    def __enter__(self) -> "Steps":
        """Show nothing until the first step."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the current step."""
        self.done()
