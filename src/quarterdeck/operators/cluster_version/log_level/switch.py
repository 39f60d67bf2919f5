"""The only place that changes this process's verbosity: one log line before, one after."""

from quarterdeck import log as logs
from quarterdeck.operators.cluster_version.log_level.decision import STARTUP, LevelDecision
from quarterdeck.operators.cluster_version.log_level.levels import NORMAL

log = logs.get_logger("cluster_version.log_level")


class Switch:
    """Sets the process's verbosity, and keeps the change until it is reported."""

    def __init__(self) -> None:
        self.startup = logs.verbosity()
        self._level = STARTUP
        self._reported: str | None = None
        """The level that was reported last; None while it is still the level in force."""

    def turn(self, decision: LevelDecision) -> None:
        """Apply the level; do nothing if it is applied already."""
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
        if self._reported is None:
            self._reported = was

    @property
    def unreported_change(self) -> tuple[str, str] | None:
        """The level that was reported last and the level in force; None if they are the same."""
        if self._reported is None:
            return None
        change = (self._reported or NORMAL, self._level or NORMAL)
        return change if change[0] != change[1] else None

    def mark_reported(self) -> None:
        """Take the level in force as reported."""
        self._reported = None


def _label(level: str) -> str:
    return level or "start-up"
