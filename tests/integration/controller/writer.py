"""Somebody who writes objects as an operator does, told from others by the server's audit log."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from quarterdeck.api.meta import Resource
from quarterdeck.controller import Objects
from quarterdeck.kube import Cache, Client, load_kubeconfig
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.audit import writes_by

MANAGER = "test-operator"


class Writer:
    """A user of its own, so that the server's audit log tells its writes from others'."""

    def __init__(self, control_plane: ControlPlane, namespace: str, manager: str = MANAGER) -> None:
        self._log = control_plane.audit_log
        self.manager = manager
        self._user = f"{manager}-{namespace}"
        self.kubeconfig = control_plane.kubeconfig_for(self._user, ["system:masters"])

    def writes(self) -> list[str]:
        """The writes that were accepted."""
        return [said for said in self.tries() if said[-3:] < "400"]

    def tries(self) -> list[str]:
        """The writes, also those that were refused."""
        return [f"{it.verb} {it.code}" for it in writes_by(self._log, self._user)]

    @asynccontextmanager
    async def objects(
        self, resource: Resource[Any], namespace: str, *, follow: bool = True
    ) -> AsyncIterator[Objects[Any]]:
        """The objects of a kind; if not followed, the cache stays as it is after its first list."""
        async with Client(load_kubeconfig(self.kubeconfig)) as client:
            cache: Cache[Any] = Cache(
                client, resource, namespace=namespace, own_manager=self.manager
            )
            following = asyncio.create_task(cache.run())
            try:
                async with asyncio.timeout(60):
                    await cache.wait_synced()
                if not follow:
                    following.cancel()
                    await asyncio.gather(following, return_exceptions=True)
                yield Objects(resource, cache, client, self.manager)
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
