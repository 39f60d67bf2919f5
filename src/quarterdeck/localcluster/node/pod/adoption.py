"""Rebuilds the containers' histories after a restart of the agent.

The processes end with the agent, so no container runs then. `lifecycle` decides what each
container does next.
"""

from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.pod.containers import (
    KILLED,
    Container,
    Exit,
    Run,
    all_containers,
)
from quarterdeck.localcluster.node.pod.exits import LastRun
from quarterdeck.localcluster.node.times import Instant, parse_time


def adopt(pod: Object, last_runs: dict[str, LastRun], now: Instant) -> dict[str, Container]:
    """The containers' histories when the agent starts: from the pod's status, and from the disk.

    `last_runs` is the last run of each container on disk. It may have started and ended without a
    write of its status.
    """
    status = pod.get("status", {})
    statuses = {
        entry["name"]: entry
        for field in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(field) or []
    }
    return {
        spec["name"]: _adopted(
            statuses.get(spec["name"], {}), last_runs.get(spec["name"], LastRun(-1)), now
        )
        for spec in all_containers(pod)
    }


def _adopted(status: dict[str, Any], last_runs: LastRun, now: Instant) -> Container:
    """One container's history from its status and its last run on disk."""
    restarts = int(status.get("restartCount", 0))
    state, last = status.get("state") or {}, status.get("lastState") or {}
    previous = _exit(last["terminated"], now) if "terminated" in last else None
    if "terminated" in state and last_runs.number <= restarts:
        return _ended(_exit(state["terminated"], now), restarts, restarts, previous)
    number = last_runs.number
    unknown = "running" in state or number > restarts or (number == restarts and previous is None)
    if not unknown:
        return _ended(previous, restarts, restarts, None) if previous else Container()
    if "terminated" in state:
        previous = _exit(state["terminated"], now)
    if last_runs.exit is not None and number >= restarts:
        return _ended(last_runs.exit, number, number, previous)
    began = parse_time(state["running"]["startedAt"]) if "running" in state else now.wall
    lost = Exit(
        code=KILLED,
        started=now.at_wall_time(began),
        finished=now,
        reason="ContainerStatusUnknown",
        message="The node's agent was gone, and the container's process with it.",
        container_id=status.get("containerID", ""),
    )
    # It is not the container's fault, so it restarts at once, without back-off.
    return _ended(lost, max(restarts, number), 0, previous)


def _ended(ended: Exit, restarts: int, crashes: int, last: Exit | None) -> Container:
    run = Run(container_id=ended.container_id, started=ended.started, exit=ended)
    return Container(restarts=restarts, crashes=crashes, run=run, last=last)


def _exit(terminated: dict[str, Any], now: Instant) -> Exit:
    began, ended = parse_time(terminated["startedAt"]), parse_time(terminated["finishedAt"])
    finished = now.at_wall_time(ended)
    return Exit(
        code=int(terminated.get("exitCode", 0)),
        started=finished.at_wall_time(began),
        finished=finished,
        reason=terminated.get("reason", ""),
        message=terminated.get("message", ""),
        container_id=terminated.get("containerID", ""),
    )
