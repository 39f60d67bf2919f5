"""What became of the pods that ran before the agent: their histories, from what was told of them.

The processes of an agent that was killed died with it, so nothing is found running. What each
container is to do next is decided by `lifecycle`, as ever.
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
from quarterdeck.localcluster.node.pod.exits import Begun
from quarterdeck.localcluster.node.times import Instant, parse_time


def adopt(pod: Object, begun: dict[str, Begun], now: Instant) -> dict[str, Container]:
    """The containers' histories when the agent starts: from the pod's status, and from the disk.

    The processes died with the agent before. `begun` says which run of each container was begun
    last: one may have been begun, and have ended, without its status being written.
    """
    status = pod.get("status", {})
    said = {
        entry["name"]: entry
        for field in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(field) or []
    }
    return {
        spec["name"]: _adopted(said.get(spec["name"], {}), begun.get(spec["name"], Begun(-1)), now)
        for spec in all_containers(pod)
    }


def _adopted(status: dict[str, Any], begun: Begun, now: Instant) -> Container:
    """One container's history from its status, and its last run that was begun."""
    restarts = int(status.get("restartCount", 0))
    state, last = status.get("state") or {}, status.get("lastState") or {}
    previous = _exit(last["terminated"], now) if "terminated" in last else None
    if "terminated" in state and begun.number <= restarts:
        return _ended(_exit(state["terminated"], now), restarts, restarts, previous)
    number = begun.number
    unknown = "running" in state or number > restarts or (number == restarts and previous is None)
    if not unknown:
        return _ended(previous, restarts, restarts, None) if previous else Container()
    if "terminated" in state:
        previous = _exit(state["terminated"], now)
    if begun.exit is not None and number >= restarts:
        return _ended(begun.exit, number, number, previous)
    began = parse_time(state["running"]["startedAt"]) if "running" in state else now.wall
    lost = Exit(
        code=KILLED,
        started=now.when_it_was(began),
        finished=now,
        reason="ContainerStatusUnknown",
        message="The node's agent was gone, and the container's process with it.",
        container_id=status.get("containerID", ""),
    )
    # Not the container's fault: it is started again at once, whatever its past.
    return _ended(lost, max(restarts, number), 0, previous)


def _ended(ended: Exit, restarts: int, crashes: int, last: Exit | None) -> Container:
    run = Run(container_id=ended.container_id, started=ended.started, exit=ended)
    return Container(restarts=restarts, crashes=crashes, run=run, last=last)


def _exit(terminated: dict[str, Any], now: Instant) -> Exit:
    began, ended = parse_time(terminated["startedAt"]), parse_time(terminated["finishedAt"])
    finished = now.when_it_was(ended)
    return Exit(
        code=int(terminated.get("exitCode", 0)),
        started=finished.when_it_was(began),
        finished=finished,
        reason=terminated.get("reason", ""),
        message=terminated.get("message", ""),
        container_id=terminated.get("containerID", ""),
    )
