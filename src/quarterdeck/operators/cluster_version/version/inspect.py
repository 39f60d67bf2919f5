"""Reads, requests and follows updates of a cluster, for the command line and the console.

`update_view` decides what to show and write; this module makes the requests.
"""

import asyncio
import shlex
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import NoReturn

from quarterdeck.api.config_v1 import CLUSTER_VERSIONS, ClusterVersion
from quarterdeck.controller.cache_tasks import running_caches
from quarterdeck.kube import Cache, Client, NotFound
from quarterdeck.operators.cluster_version.new_version import KEY
from quarterdeck.operators.cluster_version.version.update_view import (
    UpdateView,
    unaccepted_risks,
    update_patch,
    update_view,
)

FIELD_MANAGER = "quarterdeck-cli"
NO_CLUSTER_VERSION = (
    "this cluster has no ClusterVersion version, so there is nothing to update; the cluster "
    "version operator creates it; see whether that runs, with: "
    "kubectl get pods --namespace openshift-cluster-version"
)


class UpdateError(Exception):
    """Why an update cannot be shown, requested or followed, and what to do, in one line."""


async def current_update(client: Client) -> UpdateView:
    """The version of the cluster, its update, and the updates there are."""
    try:
        return update_view(await client.get(CLUSTER_VERSIONS, KEY.name))
    except NotFound:
        raise UpdateError(NO_CLUSTER_VERSION) from None


async def request_update(
    client: Client,
    *,
    version: str = "",
    image: str = "",
    force: bool = False,
    accepted_risks: frozenset[str] = frozenset(),
    timeout: timedelta,
) -> UpdateView:
    """Request an update, and return when the operator has accepted or refused it."""
    view = await current_update(client)
    if risks := unaccepted_risks(view, version, image, accepted_risks):
        told = "; ".join(f"{risk.name}: {risk.message} ({risk.url})" for risk in risks)
        # The names come from an update service, and the command may be copied into a shell.
        flags = " ".join(f"--accept-risk {shlex.quote(risk.name)}" for risk in risks)
        raise UpdateError(
            f"{version or image} is not recommended for this cluster: {told}; "
            f"choose another release, or accept the risk with {flags}"
        )
    return await _change(client, update_patch(version, image, force=force), timeout)


async def withdraw_request(client: Client, timeout: timedelta) -> UpdateView:
    """Remove `spec.desiredUpdate`, and return when the operator has seen that."""
    return await _change(client, {"spec": {"desiredUpdate": None}}, timeout)


async def follow(client: Client) -> AsyncGenerator[UpdateView, None]:
    """The view now, and again at each change; it reconnects by itself."""
    await current_update(client)  # so that an error is raised now
    changed = asyncio.Event()
    cache: Cache[ClusterVersion] = Cache(client, CLUSTER_VERSIONS, name=KEY.name)
    cache.subscribe(lambda _: changed.set())
    async with running_caches(cache):
        shown = None
        while True:
            changed.clear()
            found = cache.get(KEY)
            if found is None:
                raise UpdateError(NO_CLUSTER_VERSION)
            if (view := update_view(found)) != shown:
                shown = view
                yield view
            await changed.wait()


async def _change(client: Client, patch: dict[str, object], timeout: timedelta) -> UpdateView:
    try:
        changed = await client.patch(CLUSTER_VERSIONS, KEY.name, patch, field_manager=FIELD_MANAGER)
    except NotFound:
        raise UpdateError(NO_CLUSTER_VERSION) from None
    generation, seen = changed.metadata.generation or 0, None
    try:
        async with asyncio.timeout(timeout.total_seconds()), aclosing(follow(client)) as views:
            async for view in views:
                if view.observed_generation >= generation:
                    seen = view
                    if not view.retrieving:
                        return view
    except TimeoutError:
        if seen is not None:
            return seen  # The release is still being retrieved.
        _not_observed(timeout)
    raise AssertionError("follow ends only with an error")


def _not_observed(timeout: timedelta) -> NoReturn:
    raise UpdateError(
        f"the request is written, but the cluster version operator has not answered within "
        f"{timeout.total_seconds():g} s: see whether it runs, with: "
        "kubectl get pods --namespace openshift-cluster-version"
    ) from None
