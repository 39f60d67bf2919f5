"""The facts about a pod's containers, the input of `lifecycle`. There are no decisions here."""

from collections.abc import Iterator
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.times import Instant

KILLED = 137
"""The exit code of a process that SIGKILL ended, as in shells and Kubernetes."""


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How one run of a container ended."""

    code: int
    started: Instant
    finished: Instant
    reason: str = ""
    """Empty for the default: Completed or Error, by the code."""
    message: str = ""
    container_id: str = ""


class ProbeResults(msgspec.Struct, frozen=True, kw_only=True):
    """The probes' results; None without a probe or before its first result."""

    startup: bool | None = None
    readiness: bool | None = None
    liveness: bool | None = None


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a container: a process that runs or has ended."""

    container_id: str
    started: Instant
    health: ProbeResults = ProbeResults()
    stopping_since: Instant | None = None
    """When its termination began: by preStop, SIGTERM or SIGKILL."""
    pre_stop_pending: bool = False
    """Whether the preStop hook still runs."""
    terminated: Instant | None = None
    """When it got SIGTERM."""
    killed: bool = False
    """Whether it got SIGKILL."""
    exit: Exit | None = None


class StartProblem(msgspec.Struct, frozen=True):
    """Why a container cannot be started now, as `kubectl` shows it."""

    reason: str
    message: str


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """The history of one container in its pod."""

    restarts: int = 0
    """The number of runs before this one."""
    crashes: int = 0
    """The number of consecutive runs before this one that ended before the back-off's reset."""
    run: Run | None = None
    """The latest run; None before the first."""
    last: Exit | None = None
    """The exit of the run before the latest."""
    problem: StartProblem | None = None

    @property
    def running(self) -> bool:
        """Whether the container's process runs."""
        return self.run is not None and self.run.exit is None

    @property
    def exit(self) -> Exit | None:
        """The exit of the latest run; None while it runs."""
        return self.run.exit if self.run else None


class ObservedPod(msgspec.Struct, frozen=True, kw_only=True):
    """The input of a decision about a pod, without the time."""

    pod: Object
    containers: dict[str, Container]
    pod_ip: str = ""
    host_ip: str = "127.0.0.1"
    began: Instant | None = None
    """The start of its `activeDeadlineSeconds`."""

    def container(self, name: str) -> Container:
        """The container's history; empty if it was never started."""
        return self.containers.get(name, Container())


def init_containers(pod: Object) -> list[dict[str, Any]]:
    """The pod's init containers, sidecars among them, in order."""
    return pod["spec"].get("initContainers") or []


def main_containers(pod: Object) -> list[dict[str, Any]]:
    """The pod's ordinary containers."""
    return pod["spec"].get("containers") or []


def all_containers(pod: Object) -> Iterator[dict[str, Any]]:
    """All containers of the pod, init containers first."""
    yield from init_containers(pod)
    yield from main_containers(pod)


def is_sidecar(container: dict[str, Any]) -> bool:
    """Whether an init container runs beside the main ones instead of before them."""
    return bool(container.get("restartPolicy") == "Always")


def is_ready(spec: dict[str, Any], container: Container) -> bool:
    """Whether the container runs, has started up and passes its readiness probe."""
    return has_started(spec, container) and (
        "readinessProbe" not in spec
        or (container.run is not None and bool(container.run.health.readiness))
    )


def has_started(spec: dict[str, Any], container: Container) -> bool:
    """Whether the container runs and has passed its startup probe, if it has one."""
    if not container.running or container.run is None:
        return False
    return "startupProbe" not in spec or bool(container.run.health.startup)
