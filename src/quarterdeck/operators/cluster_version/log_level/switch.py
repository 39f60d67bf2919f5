"""The one place where this process's verbosity changes: at once, with a line before and after."""

from quarterdeck import log as logs
from quarterdeck.operators.cluster_version.log_level.decision import STARTUP, Decision
from quarterdeck.operators.cluster_version.log_level.levels import NORMAL

log = logs.get_logger("cluster_version.log_level")


class Switch:
    """Turns the process's verbosity, and remembers what has not been told yet."""

    def __init__(self) -> None:
        self.startup = logs.verbosity()
        self._level = STARTUP
        self._untold_from: str | None = None

    def turn(self, decision: Decision) -> None:
        """Put the level in force; nothing happens when it is already."""
        was, now = self._level, decision.level
        if (was, logs.verbosity()) == (now, decision.verbosity):
            return
        old = logs.verbosity()
        fields = {"before": _label(was), "after": _label(now), "verbosity": decision.verbosity}
        if old != decision.verbosity:
            log.v(old).info("last line at this log level", **fields)
        logs.set_verbosity(decision.verbosity)
        log.v(decision.verbosity).info("first line at this log level", why=decision.why, **fields)
        self._level = now
        if self._untold_from is None:
            self._untold_from = was

    def untold_change(self) -> tuple[str, str] | None:
        """From which level to which it went since this was asked last; None if to no other."""
        before, self._untold_from = self._untold_from, None
        if before is None:
            return None
        told = (before or NORMAL, self._level or NORMAL)
        return told if told[0] != told[1] else None


def _label(level: str) -> str:
    return level or "start-up"
