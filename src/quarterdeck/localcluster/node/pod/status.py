"""The status of a pod: its phase, conditions and container statuses. Pure.

The input is the pod, the state of its containers, and the time. `reports` writes it if it changes.
"""

from typing import Any

from quarterdeck.api.meta import Object
from quarterdeck.api.times import format_time
from quarterdeck.backoff import RestartBackoff
from quarterdeck.localcluster.node.pod.containers import (
    Container,
    Exit,
    ObservedPod,
    all_containers,
    has_started,
    init_containers,
    is_ready,
    is_sidecar,
    main_containers,
)
from quarterdeck.localcluster.node.pod.lifecycle import (
    FINISHED,
    crashes_after,
    init_failed,
    is_deleted,
    is_finished,
    is_initialized,
    past_deadline,
    restart_at,
    restarts_after,
)
from quarterdeck.localcluster.node.times import Instant

OURS = ("Initialized", "ContainersReady", "Ready")
"""The conditions that the node sets; it leaves others unchanged."""


def pod_status(seen: ObservedPod, back_off: RestartBackoff, now: Instant) -> Object:
    """The pod's whole status; fields of other writers stay."""
    old = seen.pod.get("status") or {}
    # A finished pod keeps its reported status: its processes have ended.
    if old.get("phase") in FINISHED:
        return dict(old)
    phase, reason = _phase(seen, now)
    status = dict(old) | {
        "phase": phase,
        "conditions": _conditions(seen, phase, now),
        "startTime": old.get("startTime") or format_time(now.wall),
        "hostIP": seen.host_ip,
        "hostIPs": [{"ip": seen.host_ip}],
    }
    if reason:
        status["reason"] = reason
    if seen.pod_ip:
        status |= {"podIP": seen.pod_ip, "podIPs": [{"ip": seen.pod_ip}]}
    if "generation" in seen.pod["metadata"]:
        status["observedGeneration"] = seen.pod["metadata"]["generation"]
    for field, specs in (
        ("initContainerStatuses", init_containers(seen.pod)),
        ("containerStatuses", main_containers(seen.pod)),
    ):
        if specs:
            status[field] = [_container_status(spec, seen, back_off, now) for spec in specs]
    return status


def _phase(seen: ObservedPod, now: Instant) -> tuple[str, str]:
    """The pod's phase, and its reason if it has one."""
    histories = [seen.container(spec["name"]) for spec in all_containers(seen.pod)]
    if not any(container.running for container in histories):
        if past_deadline(seen, now) and not is_finished(seen):
            return "Failed", "DeadlineExceeded"
        started = any(container.run for container in histories)
        if is_finished(seen) or (is_deleted(seen.pod) and started):
            return ("Succeeded" if _all_succeeded(seen) else "Failed"), ""
    if any(seen.container(spec["name"]).run for spec in main_containers(seen.pod)):
        return "Running", ""
    return "Pending", ""


def _all_succeeded(seen: ObservedPod) -> bool:
    ends = [seen.container(spec["name"]).exit for spec in main_containers(seen.pod)]
    return not init_failed(seen) and all(end is not None and end.code == 0 for end in ends)


def _conditions(seen: ObservedPod, phase: str, now: Instant) -> list[Object]:
    """Our conditions, then the others unchanged; a transition time changes with its status."""
    old = {entry["type"]: entry for entry in (seen.pod.get("status") or {}).get("conditions") or []}
    wanted = {"Initialized": _initialized(seen)}
    wanted["ContainersReady"] = _containers_ready(seen, phase)
    wanted["Ready"] = _ready(seen, wanted["ContainersReady"], old)
    if "PodScheduled" not in old:
        wanted["PodScheduled"] = {"status": "True"}
    fresh = []
    for kind, fields in wanted.items():
        was = old.get(kind, {})
        same = was.get("status") == fields["status"] and "lastTransitionTime" in was
        since = was["lastTransitionTime"] if same else format_time(now.wall)
        fresh.append({"type": kind, **fields, "lastTransitionTime": since})
    return fresh + [entry for kind, entry in old.items() if kind not in wanted]


def _initialized(seen: ObservedPod) -> Object:
    if is_initialized(seen):
        return {"status": "True"}
    waiting = [
        spec["name"]
        for spec in init_containers(seen.pod)
        if not (end := seen.container(spec["name"]).exit) or end.code != 0
    ]
    return {
        "status": "False",
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{' '.join(waiting)}]",
    }


def _containers_ready(seen: ObservedPod, phase: str) -> Object:
    if phase in FINISHED:
        reason = "PodCompleted" if phase == "Succeeded" else "PodFailed"
        return {"status": "False", "reason": reason}
    long_running = [spec for spec in init_containers(seen.pod) if is_sidecar(spec)]
    unready = [
        spec["name"]
        for spec in long_running + main_containers(seen.pod)
        if not is_ready(spec, seen.container(spec["name"]))
    ]
    if not unready:
        return {"status": "True"}
    return {
        "status": "False",
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(unready)}]",
    }


def _ready(seen: ObservedPod, containers: Object, old: dict[str, Object]) -> Object:
    """The condition Ready: all containers are ready, and every readiness gate is True."""
    gates = [gate["conditionType"] for gate in seen.pod["spec"].get("readinessGates") or []]
    closed = [gate for gate in gates if old.get(gate, {}).get("status") != "True"]
    if containers["status"] == "True" and closed:
        message = f'corresponding condition of pod readiness gate "{closed[0]}" is not True.'
        return {"status": "False", "reason": "ReadinessGatesNotReady", "message": message}
    return containers


def _container_status(
    spec: dict[str, Any], seen: ObservedPod, back_off: RestartBackoff, now: Instant
) -> Object:
    container = seen.container(spec["name"])
    done = container.exit is not None and container.exit.code == 0 and not is_sidecar(spec)
    init = any(spec is each for each in init_containers(seen.pod))
    status: Object = {
        "name": spec["name"],
        "image": spec.get("image", ""),
        "imageID": "",
        "restartCount": container.restarts,
        "ready": done if init and not is_sidecar(spec) else is_ready(spec, container),
        "started": has_started(spec, container),
        **_states(spec, container, seen, back_off, now),
    }
    if container.run is not None:
        status["containerID"] = container.run.container_id
        if container.run.container_id:
            status["imageID"] = spec.get("image", "")
    return status


def _states(
    spec: dict[str, Any],
    container: Container,
    seen: ObservedPod,
    back_off: RestartBackoff,
    now: Instant,
) -> Object:
    """The container's `state` and `lastState`."""
    last = {"terminated": _terminated(container.last)} if container.last else {}
    if container.running and container.run is not None:
        return {
            "state": {"running": {"startedAt": format_time(container.run.started.wall)}},
            "lastState": last,
        }
    ended = container.exit
    if ended is None:
        return {"state": {"waiting": _waiting(container, seen)}, "lastState": last}
    comes_again = not is_deleted(seen.pod) and restarts_after(spec, seen.pod, ended.code)
    if comes_again and (container.problem or restart_at(container, back_off) > now.boot):
        waiting = (
            _waiting(container, seen)
            if container.problem
            else _crash_loop(spec, container, seen, back_off)
        )
        return {"state": {"waiting": waiting}, "lastState": {"terminated": _terminated(ended)}}
    return {"state": {"terminated": _terminated(ended)}, "lastState": last}


def _waiting(container: Container, seen: ObservedPod) -> Object:
    if container.problem:
        return {"reason": container.problem.reason, "message": container.problem.message}
    return {"reason": "ContainerCreating" if is_initialized(seen) else "PodInitializing"}


def _crash_loop(
    spec: dict[str, Any], container: Container, seen: ObservedPod, back_off: RestartBackoff
) -> Object:
    seconds = back_off.delay(crashes_after(container, back_off))
    meta = seen.pod["metadata"]
    return {
        "reason": "CrashLoopBackOff",
        "message": f"back-off {seconds:g}s restarting failed container={spec['name']} "
        f"pod={meta['name']}_{meta.get('namespace', '')}({meta.get('uid', '')})",
    }


def _terminated(ended: Exit) -> Object:
    state: Object = {
        "exitCode": ended.code,
        "reason": ended.reason or ("Completed" if ended.code == 0 else "Error"),
        "startedAt": format_time(ended.started.wall),
        "finishedAt": format_time(ended.finished.wall),
    }
    if ended.message:
        state["message"] = ended.message
    if ended.container_id:
        state["containerID"] = ended.container_id
    return state
