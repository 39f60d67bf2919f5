"""Decides which log level is in force, and what has to be written about it. Pure.

In order: with the gate off the object is ignored, and the verbosity of the start holds. Without
an object, or with one that is being deleted, it is Normal. A value that is no level is Normal
too, and is complained about. A level whose time is over has given way to the one after it,
whether or not that has been written to the object yet.
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
"""In the place of a level: the verbosity of the start holds."""


class ObservedConfig(msgspec.Struct, frozen=True, kw_only=True):
    """All that the decision may know."""

    config: Object | None
    """The ClusterVersionOperator `cluster`."""
    gate_on: bool
    startup: int
    """The verbosity that the process was started with."""
    now: datetime


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The log level, and why."""

    level: str
    verbosity: int
    why: str
    fault: str = ""
    """What is wrong with the value, for the one who wrote it."""
    look_again: float | None = None
    """Seconds until the level runs out."""


def decide(seen: ObservedConfig) -> Decision:
    """The level that is to be in force now."""
    if not seen.gate_on:
        return Decision(level=STARTUP, verbosity=seen.startup, why="the feature gate is off")
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


def _at(level: str, why: str, *, fault: str = "", look_again: float | None = None) -> Decision:
    return Decision(
        level=level, verbosity=LEVELS[level], why=why, fault=fault, look_again=look_again
    )


def is_gone(config: Object | None) -> bool:
    """Whether the object counts no more: there is none, or it is being deleted."""
    return config is None or bool(config["metadata"].get("deletionTimestamp"))


def expiry_of(config: Object) -> Expiry | None:
    """When the object's level runs out; None when it does not, or nobody can read when."""
    written = (config["metadata"].get("annotations") or {}).get(ANNOTATION)
    return parse_expiry(written) if written else None


def unobserved(config: Object) -> int | None:
    """The generation that status still has to say; None when it says it, or a later one."""
    status = config.get("status")
    observed = status.get("observedGeneration") if isinstance(status, dict) else None
    generation: int = config["metadata"].get("generation", 0)
    seen = observed if isinstance(observed, int) else 0
    return generation if generation > seen else None


class Keep(msgspec.Struct, frozen=True):
    """Nothing to write; the level runs out in so many seconds, or never."""

    seconds: float | None = None


class Rewrite(msgspec.Struct, frozen=True):
    """Write this level to the object and take the expiry away; None leaves the level alone."""

    level: str | None
    why: str


class Unreadable(msgspec.Struct, frozen=True):
    """An expiry that nobody can read: the level stays until somebody changes it."""

    text: str


def expire(config: Object, now: datetime) -> Keep | Rewrite | Unreadable:
    """What the expiry on the object asks for now."""
    written = (config["metadata"].get("annotations") or {}).get(ANNOTATION)
    if not written:
        return Keep()
    expiry = parse_expiry(written)
    if expiry is None:
        return Unreadable(written)
    if expiry.level != known_level(asked_level(config)):
        return Rewrite(None, "another level was chosen")
    left = (expiry.until - now).total_seconds()
    return Keep(left) if left > 0 else Rewrite(expiry.then, "its time is over")
