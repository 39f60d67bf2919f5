"""Objects for the tests of ClusterVersion's decisions, with only what a test is about."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from quarterdeck.api.config_v1 import (
    ClusterOperator,
    ClusterOperatorSpec,
    ClusterOperatorStatus,
    ClusterStatusCondition,
    Release,
    UpdateHistory,
)
from quarterdeck.api.meta import ObjectMeta
from quarterdeck.payload.releases import Offer, Releases
from quarterdeck.versions import parse_version

START = datetime(2026, 1, 1, tzinfo=UTC)


def release(version: str) -> Release:
    return Release(version=version, image=f"quarterdeck:{version}")


def offer(version: str, *previous: str) -> Offer:
    parsed = parse_version(version)
    assert parsed is not None
    return Offer(
        version=parsed,
        release=release(version),
        previous=frozenset(previous),
        directory=Path(version),
    )


def releases(*offers: Offer) -> Releases:
    return Releases(offers=tuple(sorted(offers, key=lambda one: one.version, reverse=True)))


def entry(version: str, state: str = "Completed", minutes: int = 0) -> UpdateHistory:
    begun = START + timedelta(minutes=minutes)
    return UpdateHistory(
        state=state,
        started_time=begun,
        completion_time=begun if state == "Completed" else None,
        version=version,
        image=f"quarterdeck:{version}",
        verified=False,
    )


def operator(
    name: str, *, upgradeable: str = "True", reason: str = "", message: str = ""
) -> ClusterOperator:
    condition = ClusterStatusCondition(
        type="Upgradeable",
        status=upgradeable,
        reason=reason,
        message=message,
        last_transition_time=START,
    )
    return ClusterOperator(
        metadata=ObjectMeta(name=name),
        spec=ClusterOperatorSpec(),
        status=ClusterOperatorStatus(conditions=(condition,)),
    )
