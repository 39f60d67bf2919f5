"""The node's agent: connects the cache of its pods, the work queues, and what wakes a pod.

It runs as the user `system:node:<name>`, with only that user's rights. It does not use a `Manager`:
processes wake keys too, and they continue without an API server.
"""

import asyncio
import signal
from datetime import datetime
from pathlib import Path

from quarterdeck.api.meta import PODS, Key, Object
from quarterdeck.controller import Controller, Recorder, Watch
from quarterdeck.controller.cache_tasks import run_cache
from quarterdeck.controller.controller import Workers
from quarterdeck.controller.tasks import endless, guarded
from quarterdeck.kube import Cache, Client, Connection
from quarterdeck.kube.server_clock import boot_clock
from quarterdeck.localcluster.node.addresses import Network, lock_network
from quarterdeck.localcluster.node.heartbeat import Heartbeat
from quarterdeck.localcluster.node.logs.server import LogServer, Serving
from quarterdeck.localcluster.node.pod.named import PodReferences
from quarterdeck.localcluster.node.pod.pods import Pods
from quarterdeck.localcluster.node.pod.reports import FIELD_MANAGER, Reports
from quarterdeck.localcluster.node.settings import NodeSettings
from quarterdeck.localcluster.node.static_pods.static import StaticPods
from quarterdeck.localcluster.node.times import now
from quarterdeck.log import get_logger

log = get_logger("node.agent")

WORKERS = 16
STOP_SECONDS = 5.0
"""The grace period of the containers' processes when the agent ends."""


class _Stopped(Exception):  # noqa: N818 - reads as what happened
    """A signal asks the agent to end."""


def wall() -> datetime:
    """The time of day."""
    return now().wall


class Agent:
    """Runs the pods of one node."""

    def __init__(self, settings: NodeSettings, connection: Connection, serving: Serving) -> None:
        self._settings = settings
        self._connection = connection
        self._serving = serving

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT."""
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        async with Client(self._connection) as client:
            try:
                async with asyncio.TaskGroup() as tasks:
                    await self._work(client, tasks, stopped)
            except* _Stopped:
                log.info("node's agent ended", node=self._settings.name)

    async def _work(self, client: Client, tasks: asyncio.TaskGroup, stopped: asyncio.Event) -> None:
        settings = self._settings
        settings.pods.mkdir(mode=0o700, parents=True, exist_ok=True)
        node = f"spec.nodeName={settings.name}"
        cache = Cache(client, PODS, field_selector=node, own_manager=FIELD_MANAGER)
        network = lock_network(str(settings.pods))
        pods, working, reporting = self._controllers(client, cache, network, tasks)
        server = LogServer(self._serving, pods.open_log)
        port = await server.start()
        heartbeat = Heartbeat(settings, client, port, wall)
        run_cache(tasks, cache, "cache of pods")
        tasks.create_task(guarded("pods", working.run()), name="pods")
        tasks.create_task(guarded("reports", reporting.run()), name="reports")
        tasks.create_task(endless("heartbeat", heartbeat.run()), name="heartbeat")
        log.info("node's agent runs", node=settings.name, network=f"{network.prefix}.0/24")
        stopping = asyncio.ensure_future(stopped.wait())
        syncing = asyncio.ensure_future(cache.wait_synced())
        await asyncio.wait({syncing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not stopped.is_set():
            pods.remove_orphans()
            cache.subscribe(Watch(cache).handler(working.queue.add))
        await stopping
        working.drain()
        reporting.drain()
        await server.stop()
        await pods.stop(STOP_SECONDS)
        network.close()
        raise _Stopped

    def _controllers(
        self, client: Client, cache: Cache[Object], network: Network, tasks: asyncio.TaskGroup
    ) -> tuple[Pods, Workers, Workers]:
        """The pods, and the workers of the two controllers."""

        def wake(key: Key) -> None:
            working.queue.add(key)

        def report(key: Key) -> None:
            reporting.queue.add(key)

        events = Recorder(
            client,
            controller="quarterdeck.dev/node",
            instance=self._settings.name,
            clock=boot_clock,
        )
        tasks.create_task(endless("events", events.run()), name="events")
        node = self._settings.name

        def broken(path: Path, fault: str) -> None:
            # Like the kubelet: the event names the node without its real uid.
            meta = {"name": node, "uid": node, "resourceVersion": ""}
            about = {"apiVersion": "v1", "kind": "Node", "metadata": meta}
            note = f"{path}: {fault}"
            events.event(about, "Warning", "BrokenManifest", note, action="ReadManifest")

        static = StaticPods(self._settings.manifests, node, wake=wake, broken=broken, clock=wall)
        pods = Pods(
            self._settings,
            cache,
            client,
            network=network,
            named=PodReferences(client, tasks, wake),
            static=static,
            events=events,
            wake=wake,
            report=report,
            clock=now,
        )
        reports = Reports(
            pods,
            cache,
            client,
            node=node,
            static=static,
            back_off=self._settings.back_off,
            wake=wake,
            clock=now,
        )
        working = Controller("pod", pods.reconcile, [], workers=WORKERS).start(boot_clock)
        reporting = Controller("report", reports.reconcile, [], workers=WORKERS).start(boot_clock)
        tasks.create_task(endless("static pods", static.run()), name="static pods")
        return pods, working, reporting
