"""The run of one pod: its processes, probes, hooks and files.

`lifecycle` decides what to do. A change by itself (a process ends, a probe's result changes, a hook
is done) is recorded here, and `wake` is called.
"""

import asyncio
import signal
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Literal

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.logs.writer import LogWriter, files
from quarterdeck.localcluster.node.pod.adoption import adopt
from quarterdeck.localcluster.node.pod.containers import (
    Container,
    Exit,
    ObservedPod,
    ProbeResults,
    Run,
    StartProblem,
    all_containers,
)
from quarterdeck.localcluster.node.pod.exits import LastRun, exit_path, last_run, write_exit
from quarterdeck.localcluster.node.pod.lifecycle import Start
from quarterdeck.localcluster.node.pod.probes import (
    ProbeAnswer,
    ProbeStreak,
    follow_probe,
    make_probe,
)
from quarterdeck.localcluster.node.pod.tokens import Tokens
from quarterdeck.localcluster.node.sandbox.arguments import Sandbox
from quarterdeck.localcluster.node.sandbox.entry import ContainerEntry, entry_path, write_entry
from quarterdeck.localcluster.node.sandbox.process import ContainerProcess, Ended
from quarterdeck.localcluster.node.times import Clock, Instant, parse_time
from quarterdeck.localcluster.node.volumes.files import remove_tree
from quarterdeck.localcluster.status import ProcessIdentity
from quarterdeck.log import get_logger

log = get_logger("node.podrun")

EventType = Literal["Normal", "Warning"]
RecordEvent = Callable[[EventType, str, str], None]
"""Records an event about the pod: type, reason, note."""


class PodRun:
    """A pod that this agent runs or has run."""

    def __init__(
        self,
        pod: Object,
        directory: Path,
        *,
        tokens: Tokens,
        wake: Callable[[], None],
        clock: Clock,
        record: RecordEvent,
    ) -> None:
        self.uid: str = pod["metadata"]["uid"]
        self.directory = directory
        self.tokens = tokens
        self.pod_ip = ""
        self._wake = wake
        self._clock = clock
        self._record = record
        self._processes: dict[str, ContainerProcess] = {}
        self._logs: dict[str, LogWriter] = {}
        self._tasks: dict[str, set[asyncio.Task[None]]] = {}
        now = clock()
        self._leaving = False
        self.containers = adopt(pod, self._begun(pod, now), now)
        started_at = pod.get("status", {}).get("startTime")
        self._began = now.at_wall_time(parse_time(started_at)) if started_at else now

    @property
    def volumes(self) -> Path:
        """The directory of the pod's volumes."""
        return self.directory / "volumes"

    def observed(self, pod: Object) -> ObservedPod:
        """The input of `lifecycle`."""
        return ObservedPod(
            pod=pod,
            containers=dict(self.containers),
            pod_ip=self.pod_ip,
            began=self._began,
        )

    def live_log(self, container: str) -> LogWriter | None:
        """The log writer of the latest run; None if it has ended."""
        return self._logs.get(container)

    def log_path(self, container: str, number: int) -> Path:
        """The path of the log of a container's run."""
        return self.directory / "logs" / container / f"{number}.log"

    @property
    def running(self) -> bool:
        """Whether any process runs, or its exit is not recorded yet."""
        return bool(self._processes)

    async def start(self, spec: dict[str, Any], how: Start, sandbox: Sandbox) -> None:
        """Start a container's process and its probes."""
        name = spec["name"]
        old = self.containers.get(name, Container())
        self._drop_old_logs(name, how.restarts)
        # The log exists before the process: after a crash it proves that this run has started.
        lines = LogWriter(
            self.log_path(name, how.restarts),
            trouble=lambda reason, note: self._report_log(name, reason, note),
        )
        process = ContainerProcess(sandbox, lines)
        self._processes[name], self._logs[name] = process, lines
        run = Run(container_id=f"process://{uuid.uuid4()}", started=self._clock())
        self.containers[name] = Container(
            restarts=how.restarts, crashes=how.crashes, run=run, last=old.exit
        )
        process.ended.add_done_callback(lambda future: self._ended(name, run, future.result()))
        await process.start()
        if not process.ended.done():
            self._note_entry(name, process)
            self._spawn(name, self._watch_health(spec, process))
            self._record("Normal", "Started", f"Container {name} started")

    def refuse(self, container: str, problem: StartProblem) -> None:
        """Record why a container cannot be started now."""
        self._change(container, problem=problem)
        if problem.message:
            self._record("Warning", "Failed", f"Error: {problem.reason}: {problem.message}")

    def terminate(self, container: str) -> None:
        """Send SIGTERM."""
        now = self._clock()
        self._change_run(container, stopping_since=self._since(container, now), terminated=now)
        self._record("Normal", "Killing", f"Stopping container {container}")
        # It may have ended since the plan was made.
        if process := self._processes.get(container):
            process.signal(signal.SIGTERM)

    def kill(self, container: str) -> None:
        """Send SIGKILL."""
        since = self._since(container, self._clock())
        self._change_run(container, stopping_since=since, killed=True)
        if process := self._processes.get(container):
            process.kill()

    def kill_all(self) -> None:
        """Send SIGKILL to all processes."""
        for process in self._processes.values():
            process.kill()

    async def end(self, seconds: float) -> None:
        """End all processes by SIGTERM, and by SIGKILL after this many seconds."""
        self._leaving = True
        for process in self._processes.values():
            process.signal(signal.SIGTERM)
        ends = [process.ended for process in self._processes.values()]
        if ends:
            await asyncio.wait(ends, timeout=seconds)
            self.kill_all()
            await asyncio.wait(ends)

    def run_pre_stop(self, spec: dict[str, Any], seconds: float) -> None:
        """Start a container's preStop hook."""
        name = spec["name"]
        self._change_run(name, stopping_since=self._clock(), pre_stop_pending=True)
        if process := self._processes.get(name):
            self._spawn(name, self._pre_stop(spec, seconds, process))

    def remove_files(self) -> None:
        """Remove all files of the pod."""
        remove_tree(self.directory)

    def _ended(self, name: str, run: Run, ended: Ended) -> None:
        end = Exit(
            code=ended.code,
            started=run.started,
            finished=self._clock(),
            reason="StartError" if ended.start_error else "",
            message=ended.start_error,
            container_id=run.container_id,
        )
        self._change_run(name, exit=end)
        if not self._leaving:  # Otherwise it ended because the agent ends.
            write_exit(self.log_path(name, self.containers[name].restarts), end)
        # Breaks a reference cycle of process, log and pod, which otherwise waits for the garbage
        # collector.
        del self._processes[name], self._logs[name]
        for task in self._tasks.pop(name, set()):
            task.cancel()
        self._wake()

    async def _watch_health(self, spec: dict[str, Any], process: ContainerProcess) -> None:
        """Run the container's probes during its run: first startup, then the others."""
        if "startupProbe" in spec:
            await self._follow(spec, "startup", process)
            if not self._health(spec["name"]).startup:
                return
        for kind in ("readiness", "liveness"):
            if f"{kind}Probe" in spec:
                self._spawn(spec["name"], self._follow(spec, kind, process))

    async def _follow(self, spec: dict[str, Any], kind: str, process: ContainerProcess) -> None:
        name, probe = spec["name"], spec[f"{kind}Probe"]

        async def ask() -> ProbeAnswer:
            return await make_probe(probe, spec, self.pod_ip, process.run_inside)

        def on_answer(streak: ProbeStreak, outcome: ProbeAnswer) -> bool:
            if not outcome.ok:
                note = f"{kind.capitalize()} probe of {name} failed: {outcome.message}"
                self._record("Warning", "Unhealthy", note)
            health = self._health(name)
            if getattr(health, kind) is not streak.result:
                changed = msgspec.structs.replace(health, **{kind: streak.result})
                self._change_run(name, health=changed)
                self._wake()
            return kind == "startup" and streak.result is not None

        await follow_probe(probe, ask, on_answer)

    async def _pre_stop(
        self, spec: dict[str, Any], seconds: float, process: ContainerProcess
    ) -> None:
        name, hook = spec["name"], spec["lifecycle"]["preStop"]
        if "sleep" in hook:
            await asyncio.sleep(hook["sleep"].get("seconds", 0))
        else:
            asked = {**hook, "timeoutSeconds": seconds}
            outcome = await make_probe(asked, spec, self.pod_ip, process.run_inside)
            if not outcome.ok:
                self._record("Warning", "FailedPreStopHook", f"{name}: {outcome.message}")
        self._change_run(name, pre_stop_pending=False)
        self._wake()

    def _note_entry(self, name: str, process: ContainerProcess) -> None:
        """Store how to enter the container, for `quarterdeck local exec`."""
        identity = ProcessIdentity.of(process.pid) if process.pid else None
        if identity is not None:
            sandbox = process.sandbox
            entry = ContainerEntry(
                process=identity,
                root=sandbox.root,
                user=sandbox.user,
                proot=sandbox.proot,
                working_directory=sandbox.working_directory,
            )
            try:
                write_entry(entry_path(self.directory, name), entry)
            except OSError as error:  # A full disk must not stop the container.
                log.warning("no way into the container", container=name, error=str(error))

    def _report_log(self, container: str, reason: str, note: str) -> None:
        kind: EventType = "Warning" if reason == "LogsLost" else "Normal"
        self._record(kind, reason, f"Container {container}: {note}")

    def _spawn(self, container: str, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that ends with the container's run."""
        task = asyncio.create_task(work, name=f"{container} of {self.uid}")
        self._tasks.setdefault(container, set()).add(task)

    def _health(self, name: str) -> ProbeResults:
        run = self.containers[name].run
        return run.health if run else ProbeResults()

    def _since(self, name: str, now: Instant) -> Instant:
        run = self.containers[name].run
        return run.stopping_since or now if run else now

    def _change(self, name: str, **fields: Any) -> None:
        old = self.containers.get(name, Container())
        self.containers[name] = msgspec.structs.replace(old, **fields)

    def _change_run(self, name: str, **fields: Any) -> None:
        if run := self.containers[name].run:
            self._change(name, run=msgspec.structs.replace(run, **fields))

    def _begun(self, pod: Object, now: Instant) -> dict[str, LastRun]:
        """The last run that was begun, of each container, by its logs."""
        names = [spec["name"] for spec in all_containers(pod)]
        found = {name: last_run(self.log_path(name, 0).parent, now) for name in names}
        return {name: begun for name, begun in found.items() if begun is not None}

    def _drop_old_logs(self, name: str, number: int) -> None:
        """Remove all logs but those of this run and the one before."""
        for old in range(max(0, number - 3), number - 1):
            path = self.log_path(name, old)
            for left in (*files(path), exit_path(path)):
                left.unlink(missing_ok=True)
