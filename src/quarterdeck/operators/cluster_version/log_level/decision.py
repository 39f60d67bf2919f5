"""Decides which log level is in force, and what has to be written about it. Pure.

In order: if the feature gate is off, the object is ignored and the start-up verbosity applies. If
the object is missing or being deleted, the level is Normal. If the value is not a level, the level
is Normal and the fault is reported. If the level has expired, the next one applies, whether or not
it has been written to the object yet.
"""

from datetime import datetime

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.operators.cluster_version.log_level.expiry import (
    ANNOTATION,
    Expiry,
    parse_expiry,
)
from quarterdeck.operators.cluster_version.log_level.levels import (
    LEVELS,
    NORMAL,
    asked_level,
    known_level,
    unknown_level,
)

STARTUP = ""
"""Instead of a level: the start-up verbosity applies."""


class ObservedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a decision."""

    config: Object | None
    """The ClusterVersionOperator `cluster`."""
    gate_on: bool
    startup: int
    """The verbosity that the process was started with."""
    now: datetime


class LevelDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The log level to apply, and the reason."""

    level: str
    verbosity: int
    why: str
    fault: str = ""
    """Why the value is invalid, for its author."""
    look_again: float | None = None
    """Seconds until the level expires."""


def decide(seen: ObservedConfig) -> LevelDecision:
    """The level to apply now."""
    if not seen.gate_on:
        return LevelDecision(level=STARTUP, verbosity=seen.startup, why="the feature gate is off")
    if is_gone(seen.config):
        return _at(NORMAL, "there is no ClusterVersionOperator")
    assert seen.config is not None  # noqa: S101 - gone otherwise
    asked = asked_level(seen.config)
    level = known_level(asked)
    if level is None:
        return _at(NORMAL, "the value is not a log level", fault=unknown_level(asked))
    expiry = expiry_of(seen.config)
    if expiry is None or expiry.level != level:
        return _at(level, "operatorLogLevel says so")
    left = (expiry.until - seen.now).total_seconds()
    if left > 0:
        return _at(level, f"operatorLogLevel says so: {expiry}", look_again=left)
    return _at(expiry.then, f"its time is over: {expiry}")


def _at(level: str, why: str, *, fault: str = "", look_again: float | None = None) -> LevelDecision:
    return LevelDecision(
        level=level, verbosity=LEVELS[level], why=why, fault=fault, look_again=look_again
    )


def is_gone(config: Object | None) -> bool:
    """Whether the object is missing or being deleted."""
    return config is None or bool(config["metadata"].get("deletionTimestamp"))


def expiry_of(config: Object) -> Expiry | None:
    """When the object's level expires; None if it does not, or if the expiry is unreadable."""
    written = (config["metadata"].get("annotations") or {}).get(ANNOTATION)
    return parse_expiry(written) if written else None


def unobserved(config: Object) -> int | None:
    """The generation that the status does not report yet; None if it reports it or a later one."""
    status = config.get("status")
    observed = status.get("observedGeneration") if isinstance(status, dict) else None
    generation: int = config["metadata"].get("generation", 0)
    seen = observed if isinstance(observed, int) else 0
    return generation if generation > seen else None


class Keep(msgspec.Struct, frozen=True):
    """Write nothing; the level expires in so many seconds, or never."""

    seconds: float | None = None


class Rewrite(msgspec.Struct, frozen=True):
    """Write this level to the object and remove the expiry; None keeps the level."""

    level: str | None
    why: str


class UnreadableExpiry(msgspec.Struct, frozen=True):
    """The expiry cannot be parsed; the level stays until somebody changes it."""

    text: str


def expire(config: Object, now: datetime) -> Keep | Rewrite | UnreadableExpiry:
    """What to do about the object's expiry now."""
    written = (config["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not written:
        return Keep()
    expiry = parse_expiry(written)
    if expiry is None:
        return UnreadableExpiry(written)
    if expiry.level != known_level(asked_level(config)):
        return Rewrite(None, "another level was chosen")
    left = (expiry.until - now).total_seconds()
    return Keep(left) if left > 0 else Rewrite(expiry.then, "its time is over")
