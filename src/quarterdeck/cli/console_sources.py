"""The functions of the operators' packages that the console uses: it does not import them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from quarterdeck.api.config_v1 import ClusterVersion, FeatureGate
from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import IngressController
from quarterdeck.console.sources import Sources
from quarterdeck.kube import Client
from quarterdeck.operators.cluster_version.log_level.request import (
    LevelObjects,
    level_patch,
    level_view,
)
from quarterdeck.operators.cluster_version.version.update_view import update_patch, update_view
from quarterdeck.operators.ingress import inspect as ingress
from quarterdeck.operators.staleness import inspect as staleness
from quarterdeck.operators.subscriptions import inspect as subscriptions
from quarterdeck.operators.subscriptions.next_version import next_version
from quarterdeck.operators.subscriptions.render import CannotRender


def sources() -> Sources:
    """The functions, with their answers as plain data."""
    return Sources(
        staleness=_staleness,
        leases=staleness.lease_keys,
        keeps_upgradeable_false=staleness.keeps_upgradeable_false,
        updates=lambda version: _plain(update_view(version)),
        update_patch=lambda version: update_patch(version, "", force=False),
        log_level=_log_level,
        log_level_patch=_log_level_patch,
        ingress=_ingress,
        subscription=_subscription,
        next_version=_next_version,
    )


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)


def _staleness(
    cluster_operator: Object,
    settings: Object | None,
    unread: str,
    leases: Sequence[Object],
    now: datetime,
) -> Object:
    inputs = staleness.Inputs(
        cluster_operator=cluster_operator, settings=settings, unread=unread, leases=leases
    )
    found: Object = _plain(staleness.explained(inputs, now))
    return found


def _log_level(config: Object, gates: FeatureGate | None, version: ClusterVersion | None) -> Object:
    view: Object = _plain(level_view(LevelObjects(config=config, gates=gates, version=version)))
    return view


def _log_level_patch(
    config: Object, level: str, lasting: timedelta | None, now: datetime
) -> Object:
    return level_patch(config, level, lasting, now)


async def _ingress(controller: IngressController, client: Client | None) -> Object:
    live = await ingress.live_objects(client, controller.metadata.name) if client else None
    found: Object = _plain(await ingress.explain(controller, live))
    return found


async def _subscription(client: Client, namespace: str, name: str) -> Object:
    try:
        found: Object = _plain(await subscriptions.installed_rendering(client, namespace, name))
    except CannotRender as error:
        return {"why": str(error)}
    return found


async def _next_version(client: Client, namespace: str, name: str) -> Object:
    try:
        found: Object = _plain(await next_version(client, namespace, name))
    except CannotRender as error:
        return {"why": str(error)}
    return found
