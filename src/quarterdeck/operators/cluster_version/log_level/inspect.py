"""Reads and sets the log level of a cluster, for the command line and the console.

`request` decides what to show and write; this module makes the requests.
"""

import asyncio
import time
from datetime import timedelta

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS, FEATURE_GATES
from quarterdeck.feature_gates import FEATURE_GATE_NAME
from quarterdeck.kube import Client, NotFound
from quarterdeck.operators.cluster_version.log_level.controller import CONFIGS
from quarterdeck.operators.cluster_version.log_level.levels import CONFIG_NAME
from quarterdeck.operators.cluster_version.log_level.request import (
    LevelObjects,
    LevelView,
    level_patch,
    level_view,
    why_gate_is_off,
)

POLL_PERIOD = 0.1
FIELD_MANAGER = "quarterdeck-cli"


class LogLevelError(Exception):
    """Why the log level cannot be shown or set, and what to do, in one line."""


async def current_level(client: Client) -> LevelView:
    """The log level, whether it is in force, and when it expires."""
    return level_view(await _look(client))


async def set_level(
    client: Client, level: str, lasting: timedelta | None, timeout: timedelta
) -> tuple[LevelView, LevelView]:
    """Set the log level, wait until it is applied, and return the level before and after."""
    seen = await _look(client)
    if why := why_gate_is_off(seen):
        raise LogLevelError(why)
    now = client.now()
    try:
        patch = level_patch(seen.config, level, lasting, now)
    except OverflowError:
        why = f"{lasting} is beyond the end of the calendar; set it without --for"
        raise LogLevelError(why) from None
    changed = await client.patch(CONFIGS, CONFIG_NAME, patch, field_manager=FIELD_MANAGER)
    wanted = changed["metadata"]["generation"]
    deadline = time.monotonic() + timeout.total_seconds()
    while True:
        view = await current_level(client)
        if view.observed_generation >= wanted:
            return level_view(seen), view
        if time.monotonic() > deadline:
            raise LogLevelError(
                f"{level} was accepted, but is not in force after {timeout.total_seconds():g} s: "
                "see whether the cluster version operator runs, with: "
                "kubectl get pods --namespace openshift-cluster-version"
            )
        await asyncio.sleep(POLL_PERIOD)


async def _look(client: Client) -> LevelObjects:
    config = await client.find(CONFIGS, CONFIG_NAME)
    if config is None:
        raise LogLevelError(await _why_no_config(client))
    return LevelObjects(
        config=config,
        gates=await client.find(FEATURE_GATES, FEATURE_GATE_NAME),
        version=await client.find(CLUSTER_VERSIONS, "version"),
    )


async def _why_no_config(client: Client) -> str:
    try:
        await client.list(CONFIGS)
    except NotFound:
        return (
            "this cluster has no log level to set: there is no resource type "
            f"{CONFIGS.plural}.{CONFIGS.group}; it comes with Quarterdeck's release"
        )
    return (
        "there is no ClusterVersionOperator cluster, so the log level is Normal; the release has "
        "one, and until it is there again this makes one: kubectl create --filename "
        "deploy/cluster-version/config.yaml"
    )
