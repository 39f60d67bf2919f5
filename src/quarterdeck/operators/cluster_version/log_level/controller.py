"""Three controllers of the log level that do not wait for each other.

- `log-level` applies the level. It runs in every replica, leader or not, and makes no request, so
  no failed request delays a level.
- `log-level-status` (leader) then reports it: observedGeneration means applied. It creates an event
  about a change, and about a value that is not a level.
- `log-level-expiry` (leader) writes the next level when a level expires.

The object is read as a plain dictionary, not as our type, so that a malformed value is reported and
not skipped.
"""

from typing import assert_never

from quarterdeck import log as logs
from quarterdeck.api.config_v1 import FEATURE_GATES
from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operator_v1alpha1 import CLUSTER_VERSION_OPERATORS
from quarterdeck.controller import (
    DONE,
    Controller,
    Manager,
    Result,
    Selection,
    Watch,
    to_singleton,
)
from quarterdeck.feature_gates import FEATURE_GATE_NAME, LOG_LEVEL_GATE, gate_is_on
from quarterdeck.operators.cluster_version.log_level.decision import (
    Keep,
    LevelDecision,
    ObservedConfig,
    Rewrite,
    UnreadableExpiry,
    decide,
    expire,
    is_gone,
    unobserved,
)
from quarterdeck.operators.cluster_version.log_level.expiry import ANNOTATION, UNREADABLE_REMEDY
from quarterdeck.operators.cluster_version.log_level.gauge import add_verbosity_gauge
from quarterdeck.operators.cluster_version.log_level.levels import CONFIG_NAME
from quarterdeck.operators.cluster_version.log_level.switch import Switch
from quarterdeck.operators.cluster_version.selections import THE_GATES
from quarterdeck.operators.cluster_version.settings import Settings

log = logs.get_logger("cluster_version.log_level")

CONFIGS = CLUSTER_VERSION_OPERATORS.plain
THE_CONFIG = Selection(name=CONFIG_NAME, optional=True)
_KEY = Key("", CONFIG_NAME)
MIN_REQUEUE_SECONDS = 0.05
"""The server's clock has whole seconds, so an expiry may be due a little later."""


def add_log_level(manager: Manager, settings: Settings) -> None:
    """Let the ClusterVersionOperator `cluster` set the verbosity of this process."""
    level = LogLevelReconciler(manager, settings)
    add_verbosity_gauge(manager)
    both: list[Watch] = [
        Watch(level.configs),
        Watch(level.gates, to_singleton(_KEY)),
    ]
    manager.add(Controller("log-level", level.apply, both, needs_leader=False))
    manager.add(Controller("log-level-status", level.report, both))
    manager.add(Controller("log-level-expiry", level.run_out, both))


class LogLevelReconciler:
    """The reconcile functions of the three controllers."""

    def __init__(self, manager: Manager, settings: Settings) -> None:
        self._manager = manager
        self._version = settings.release_version
        self.configs = manager.objects(CONFIGS, THE_CONFIG, writes=["patch", "status"])
        self.gates = manager.cache(FEATURE_GATES, THE_GATES)
        self._switch = Switch()

    async def apply(self, key: Key) -> Result:
        """Apply the level in this replica."""
        seen = self._observe()
        decision = self._apply(seen)
        if seen.config is not None and unobserved(seen.config) is None:
            # The leader has reported it. A later leader must not report it again.
            self._switch.mark_reported()
        log.v(4).info(
            "log level decided",
            log_level=decision.level or "start-up",
            verbosity=decision.verbosity,
            why=decision.why,
            gate=seen.gate_on,
        )
        return DONE if decision.look_again is None else _in(decision.look_again)

    async def report(self, key: Key) -> Result:
        """Report on the object that its level is applied."""
        seen = self._observe()
        decision = self._apply(seen)
        change = self._switch.unreported_change
        self._switch.mark_reported()
        config = seen.config
        if config is None or is_gone(config):
            return DONE
        generation = unobserved(config)
        if generation is None:
            return DONE
        if not seen.gate_on:
            log.info("log level ignored", why=decision.why, generation=generation)
            return DONE
        events = self._manager.events
        if change is not None:
            note = "operatorLogLevel changed from {} to {}".format(*change)
            events.event(config, "Normal", "OperatorLogLevelChanged", note, action="SetLogLevel")
        if decision.fault:
            log.warning("log level not known", said=decision.fault)
            events.event(config, "Warning", "UnknownLogLevel", decision.fault, action="SetLogLevel")
        status = config.get("status")
        kept = status if isinstance(status, dict) else {}
        await self.configs.set_status(config, {**kept, "observedGeneration": generation})
        log.info("log level reported", log_level=decision.level, generation=generation)
        return DONE

    async def run_out(self, key: Key) -> Result:
        """Write the next level when the present one expires."""
        seen = self._observe()
        config = seen.config
        if config is None or is_gone(config) or not seen.gate_on:
            return DONE
        step = expire(config, seen.now)
        match step:
            case Keep():
                return DONE if step.seconds is None else _in(step.seconds)
            case UnreadableExpiry(text):
                note = f"metadata.annotations[{ANNOTATION}]: {text[:100]!r} cannot be read, so "
                note += f"the level stays; {UNREADABLE_REMEDY}"
                self._manager.events.event(
                    config, "Warning", "UnreadableExpiry", note, action="SetLogLevel"
                )
                return DONE
            case Rewrite():
                await self._rewrite(config, step)
                return DONE
            case _:
                assert_never(step)

    async def _rewrite(self, config: Object, step: Rewrite) -> None:
        """Write the next level and remove the expiry, unless the object has changed."""
        patch: Object = {"metadata": {"annotations": {ANNOTATION: None}}}
        if step.level is not None:
            patch["spec"] = {"operatorLogLevel": step.level}
        await self.configs.patch(config, patch)
        log.info("expiry of the log level taken away", log_level=step.level, why=step.why)

    def _apply(self, seen: ObservedConfig) -> LevelDecision:
        decision = decide(seen)
        self._switch.turn(decision)
        return decision

    def _observe(self) -> ObservedConfig:
        gates = self.gates.get(Key("", FEATURE_GATE_NAME))
        return ObservedConfig(
            config=self.configs.get(_KEY),
            gate_on=gate_is_on(gates, self._version, LOG_LEVEL_GATE),
            startup=self._switch.startup,
            now=self._manager.now(),
        )


def _in(seconds: float) -> Result:
    return Result(requeue_after=max(seconds, MIN_REQUEUE_SECONDS))
