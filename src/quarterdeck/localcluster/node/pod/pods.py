"""Reconciles the pods of this node: observes, lets `lifecycle` plan, carries the plan out.

A process that ends, a probe whose result changes, and a ConfigMap that changes only wake the pod's
key. Nothing here waits for the API server: `reports` makes the requests.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, assert_never

from quarterdeck.api.meta import Key, Object
from quarterdeck.controller import DONE, Recorder, Result
from quarterdeck.kube import Cache, Client
from quarterdeck.localcluster.node.addresses import Network, NoAddressError
from quarterdeck.localcluster.node.images import find_image
from quarterdeck.localcluster.node.logs.query import LogQuery
from quarterdeck.localcluster.node.logs.reader import read
from quarterdeck.localcluster.node.logs.server import NoLogError
from quarterdeck.localcluster.node.pod.containers import StartProblem, all_containers
from quarterdeck.localcluster.node.pod.environment import NotYetError, UnresolvedError
from quarterdeck.localcluster.node.pod.launch import Launcher
from quarterdeck.localcluster.node.pod.lifecycle import (
    FINISHED,
    Action,
    Kill,
    PodPlan,
    Remove,
    RunPreStop,
    Start,
    Terminate,
    plan,
)
from quarterdeck.localcluster.node.pod.named import Name, PodReferences
from quarterdeck.localcluster.node.pod.run import EventType, PodRun
from quarterdeck.localcluster.node.pod.tokens import Tokens
from quarterdeck.localcluster.node.pod.unsupported import unsupported
from quarterdeck.localcluster.node.sandbox.mounts import NoMountPointError
from quarterdeck.localcluster.node.settings import NodeSettings
from quarterdeck.localcluster.node.static_pods.static import StaticPods, is_mirror
from quarterdeck.localcluster.node.times import Clock
from quarterdeck.localcluster.node.volumes.contents import references
from quarterdeck.localcluster.node.volumes.files import remove_tree
from quarterdeck.log import get_logger

log = get_logger("node.pods")

MAX_ROUNDS = 8
"""The most plans that one reconcile carries out."""
BLOCKED_RETRY = 5.0
"""Seconds until the next attempt to start a container, if nothing changes before."""


class Pods:
    """All pods of this node."""

    def __init__(
        self,
        settings: NodeSettings,
        cache: Cache[Object],
        client: Client,
        *,
        network: Network,
        named: PodReferences,
        static: StaticPods,
        events: Recorder,
        wake: Callable[[Key], None],
        report: Callable[[Key], None],
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._cache = cache
        self._client = client
        self._network = network
        self._named = named
        self._static = static
        self._events = events
        self._wake = wake
        self._report = report
        self._clock = clock
        self._launcher = Launcher(settings, named)
        self._runs: dict[Key, PodRun] = {}

    async def reconcile(self, key: Key) -> Result:
        """Carry out the plan of one pod, and request a report."""
        pod = self.pod_of(key)
        if not self._end_orphan(key, pod) or pod is None:
            # The report may have to remove its mirror pod.
            self._report(key)
            return DONE
        run = self._runs.get(key) or self._begin(key, pod)
        self._supply(key, pod, run)
        decided, blocked = await self._carry_out_all(pod, run)
        self._report(key)
        waits = [BLOCKED_RETRY] if blocked else []
        if decided.wake is not None:
            waits.append(max(0.0, decided.wake - self._clock().boot))
        return Result(requeue_after=min(waits, default=None))

    def pod_of(self, key: Key) -> Object | None:
        """The pod with this key: a static pod, or one from the API server."""
        pod = self._static.get(key)
        if pod is None:
            pod = self._cache.get(key)
            if pod is not None and is_mirror(pod):
                return None
        return pod

    def run_of(self, key: Key, pod: Object) -> PodRun | None:
        """The run of this pod; None if there is none yet."""
        run = self._runs.get(key)
        return run if run is not None and run.uid == pod["metadata"]["uid"] else None

    def open_log(
        self, namespace: str, pod: str, container: str, query: LogQuery
    ) -> AsyncGenerator[bytes, None]:
        """The log for a query; raises `NoLogError` if there is none."""
        run = self._runs.get(Key(namespace, pod))
        if run is None or container not in run.containers:
            raise NoLogError(f'container "{container}" in pod "{pod}" is not on this node')
        history = run.containers[container]
        if query.previous:
            number = history.restarts - 1
            path = run.log_path(container, number)
            if number < 0 or not path.exists():
                raise NoLogError(
                    f'previous terminated container "{container}" in pod "{pod}" not found'
                )
            return read(path, query, self._clock().wall, None)
        path = run.log_path(container, history.restarts)
        if history.run is None or not path.exists():
            reason = history.problem.reason if history.problem else "ContainerCreating"
            raise NoLogError(
                f'container "{container}" in pod "{pod}" is waiting to start: {reason}'
            )
        return read(path, query, self._clock().wall, run.live_log(container))

    def remove_orphans(self) -> None:
        """Remove the files of pods that were deleted while no agent ran; called after sync."""
        known = {pod["metadata"]["uid"] for pod in self._cache.list()} | self._static.uids
        if not self._settings.pods.exists():
            return
        for directory in self._settings.pods.iterdir():
            if directory.name not in known:
                log.info("removing files of a pod that is gone", uid=directory.name)
                remove_tree(directory)

    async def stop(self, seconds: float) -> None:
        """End all processes, because the agent ends."""
        await asyncio.gather(*(run.end(seconds) for run in self._runs.values()))

    # --- one pod

    def _end_orphan(self, key: Key, pod: Object | None) -> bool:
        """End the run of an earlier pod with this key; True if nothing of it is left."""
        run = self._runs.get(key)
        if run is None or (pod is not None and pod["metadata"]["uid"] == run.uid):
            return True
        if run.running:
            run.kill_all()
            return False
        self._forget(key, run)
        return True

    def _begin(self, key: Key, pod: Object) -> PodRun:
        # An object from a list has no kind. Only the metadata is kept, not the whole pod.
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"]}

        def record(type_: EventType, reason: str, note: str) -> None:
            self._events.event(about, type_, reason, note, action=reason)

        run = PodRun(
            pod,
            self._settings.pods / pod["metadata"]["uid"],
            tokens=Tokens(self._client, share=self._settings.token_share),
            wake=lambda: self._wake(key),
            clock=self._clock,
            record=record,
        )
        self._runs[key] = run
        if "startTime" not in pod.get("status", {}):
            for line in unsupported(pod, root=self._settings.root):
                record("Warning", "Unsupported", line)
        return run

    def _supply(self, key: Key, pod: Object, run: PodRun) -> None:
        """Watch the objects that the pod refers to, assign its address, and update its files."""
        if pod.get("status", {}).get("phase") in FINISHED:
            self._named.watch(key, ())
            if not run.running:
                # A Job's pods may stay for good, and there are only 254 addresses.
                self._network.release(run.uid)
            return
        needed = references(pod)
        namespace = key.namespace
        self._named.watch(
            key,
            {Name("ConfigMap", Key(namespace, name)) for name in needed.config_maps}
            | {Name("Secret", Key(namespace, name)) for name in needed.secrets},
        )
        self._give_address(pod, run)
        self._launcher.refresh_volumes(pod, run)

    def _give_address(self, pod: Object, run: PodRun) -> None:
        if pod["spec"].get("hostNetwork"):
            run.pod_ip = "127.0.0.1"
            return
        try:
            run.pod_ip = self._network.address(run.uid, pod.get("status", {}).get("podIP", ""))
        except NoAddressError as error:
            for spec in all_containers(pod):
                run.refuse(spec["name"], StartProblem("CreateContainerError", str(error)))

    async def _carry_out_all(self, pod: Object, run: PodRun) -> tuple[PodPlan, bool]:
        """Carry out plans until nothing changes; the last plan, and whether a start is blocked."""
        for _ in range(MAX_ROUNDS):
            decided = plan(run.observed(pod), self._settings.back_off, self._clock())
            done = [await self._carry_out(action, pod, run) for action in decided.actions]
            if not any(done):
                break
        blocked = any(isinstance(action, Start) for action in decided.actions)
        return decided, blocked

    async def _carry_out(self, action: Action, pod: Object, run: PodRun) -> bool:
        """Carry out one action; True if something has changed."""
        match action:
            case Start(container=name):
                return await self._start(_spec(pod, name), action, pod, run)
            case RunPreStop(container=name, seconds=seconds):
                run.run_pre_stop(_spec(pod, name), seconds)
            case Terminate(container=name):
                run.terminate(name)
            case Kill(container=name):
                run.kill(name)
            case Remove():
                return False
            case _:
                assert_never(action)
        return True

    async def _start(self, spec: dict[str, Any], how: Start, pod: Object, run: PodRun) -> bool:
        name = spec["name"]
        image = find_image(spec.get("image", ""), self._settings.installation)
        problem = None
        if image is None:
            problem = StartProblem(
                "ErrImageNeverPull",
                f'Container image "{spec.get("image", "")}" is not here: this node pulls none, and '
                "runs those whose repository ends in quarterdeck, quarterdeck-release or "
                "quarterdeck-router",
            )
        elif run.pod_ip:
            try:
                key = Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
                static = self._static.get(key) is not None
                sandbox = self._launcher.sandbox(spec, pod, run, image, static=static)
                await run.start(spec, how, sandbox)
                return True
            except NotYetError as error:
                if run.tokens.trouble:
                    problem = StartProblem("CreateContainerConfigError", run.tokens.trouble)
                log.v(4).info("container waits", pod=_name(pod), container=name, why=str(error))
            except UnresolvedError as error:
                problem = StartProblem("CreateContainerConfigError", str(error))
            except (NoMountPointError, OSError) as error:
                problem = StartProblem("CreateContainerError", str(error))
        if problem and run.containers[name].problem != problem:
            run.refuse(name, problem)
        return False

    def _forget(self, key: Key, run: PodRun) -> None:
        self._named.watch(key, ())
        self._network.release(run.uid)
        run.remove_files()
        del self._runs[key]


def _spec(pod: Object, name: str) -> dict[str, Any]:
    return next(spec for spec in all_containers(pod) if spec["name"] == name)


def _name(pod: Object) -> str:
    return f"{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"
