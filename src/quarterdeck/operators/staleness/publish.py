"""Publishes the checker's settings, and reports when the checker cannot watch.

It runs beside the controller and starts before it: the watch may fail from the start. It writes
without a cache and without a fence: each checker writes only its own entry of the ConfigMap, and
waiting for one more cache would delay the checks.
"""

import asyncio
from collections.abc import Callable

from quarterdeck.api.meta import CONFIG_MAPS, Object
from quarterdeck.controller import Manager, Selection
from quarterdeck.kube import AlreadyExists, Cache, KubeError, NotFound
from quarterdeck.log import get_logger
from quarterdeck.operators.staleness.published import NAME, NAMESPACE, entry, outdated
from quarterdeck.operators.staleness.settings import Settings
from quarterdeck.status.reporter import PLAIN_CLUSTER_OPERATORS
from quarterdeck.status.writers import CHECKER

log = get_logger("staleness")

LOOK_PERIOD = 5.0
"""Seconds between two looks at the state of the watch."""
PUBLISH_PERIOD = 60.0
"""Seconds after which unchanged settings are published again, so that they do not expire."""

CLUSTER_OPERATOR_CRD: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"{PLAIN_CLUSTER_OPERATORS.plural}.{PLAIN_CLUSTER_OPERATORS.group}",
        "uid": "",
        "resourceVersion": "",
    },
}
"""The object of events while no ClusterOperator can be read. It has no namespace, so its events go
to a namespace where the checker may write them."""


class Publisher:
    """Publishes one checker's settings, and reports when it cannot watch."""

    def __init__(
        self,
        manager: Manager,
        settings: Settings,
        cache: Cache[Object],
        own: str,
        trouble: Callable[[], str],
    ) -> None:
        """`own` is the checker's key; `trouble` returns why it cannot write, or an empty text."""
        self._manager = manager
        self._settings = settings
        self._cache = cache
        self._own = own
        self._trouble = trouble
        self._client = manager.replica_client
        self._began = 0.0
        self._refused = False
        self._said = ""
        """The trouble that was last published."""
        self._outdated: list[str] = []
        one = Selection(namespace=NAMESPACE, name=NAME)
        manager.declare(CONFIG_MAPS, "create", "patch", selection=one)

    async def run(self) -> None:
        """Publish and report until cancelled."""
        self._began = self._manager.clock()
        published: tuple[float, str] | None = None
        reported: float | None = None
        while True:
            now, blind = self._manager.clock(), self._blindness()
            trouble = blind or self._trouble()
            if published is None or published[1] != trouble or now - published[0] >= PUBLISH_PERIOD:
                published = (now, trouble)
                await self._publish(trouble)
            if not blind:
                reported = None
            elif reported is None or now - reported >= PUBLISH_PERIOD:
                reported = now
                note = f"The staleness checker {self._own} {blind}"
                self._manager.events.event(
                    CLUSTER_OPERATOR_CRD, "Warning", "CannotCheck", note, action="Check"
                )
            await asyncio.sleep(LOOK_PERIOD)

    def _blindness(self) -> str:
        """Why the watch has been down for some time; empty if it has not."""
        cache = self._cache
        lost = cache.lost_for if cache.synced else self._manager.clock() - self._began
        if lost <= self._manager.watch_grace_period or cache.missing:
            return ""
        return f"cannot watch the cluster operators: {cache.trouble or 'no answer'}"

    async def write(self) -> None:
        """Publish the settings with the time of now; `KubeError` if the server refuses that."""
        now = self._manager.now()
        ours: dict[str, str | None] = {self._own: entry(self._settings, now, self._said)}
        gone = dict.fromkeys(self._outdated)
        try:
            found: Object = await self._client.patch(
                CONFIG_MAPS, NAME, {"data": gone | ours}, NAMESPACE, field_manager=CHECKER
            )
        except NotFound:
            found = await self._create(ours)
        self._outdated = outdated(found, now, self._own)

    async def _publish(self, trouble: str) -> None:
        self._said = trouble
        try:
            await self.write()
        except AlreadyExists:
            return  # Another checker has just created it; the next round patches it.
        except KubeError as error:
            if not self._refused:
                log.warning("settings not published", config_map=NAME, error=str(error))
            self._refused = True
            return
        self._refused = False

    async def _create(self, data: dict[str, str | None]) -> Object:
        return await self._client.create(
            CONFIG_MAPS,
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": NAME, "namespace": NAMESPACE},
                "data": data,
            },
            field_manager=CHECKER,
        )
