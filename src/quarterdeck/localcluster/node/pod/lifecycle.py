"""Decides what to do with a pod: which containers to start and to stop, and how.

`plan` is a pure function of the pod, the state of its containers, and the time since boot, so that
a change of the clock changes no decision. A plan may be carried out late, twice, or after a crash:
the next plan uses the state at that time. `status` decides what is reported.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.backoff import RestartBackoff
from quarterdeck.localcluster.node.pod.containers import (
    Container,
    ObservedPod,
    Run,
    all_containers,
    has_started,
    init_containers,
    is_sidecar,
    main_containers,
)
from quarterdeck.localcluster.node.times import Instant

GRACE_AFTER_PRE_STOP = 2.0
"""Seconds after SIGTERM before a kill, even if preStop has used the whole grace period."""

FINISHED = ("Succeeded", "Failed")


CONTAINER_BACKOFF = RestartBackoff(first=10, maximum=300, reset=600, at_once=1)
"""The back-off of a container's restarts, as in the kubelet."""


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Start a container; `restarts` and `crashes` go into its history."""

    container: str
    restarts: int
    crashes: int


class RunPreStop(msgspec.Struct, frozen=True, kw_only=True):
    """Run a container's preStop hook for at most this many seconds."""

    container: str
    seconds: float


class Terminate(msgspec.Struct, frozen=True, kw_only=True):
    """Send SIGTERM to a container's process."""

    container: str


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """Send SIGKILL to a container's process."""

    container: str


class Remove(msgspec.Struct, frozen=True, kw_only=True):
    """Remove the pod's files, then the pod from the API server: all processes have ended."""


Action = Start | RunPreStop | Terminate | Kill | Remove


class PodPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now, and when to plan again without a change."""

    actions: tuple[Action, ...] = ()
    wake: float | None = None
    """In seconds since boot."""


def plan(seen: ObservedPod, back_off: RestartBackoff, now: Instant) -> PodPlan:
    """What to do with the pod now."""
    pod = seen.pod
    if is_deleted(pod):
        return _stop(seen, _deletion_grace(pod), now, then=Remove())
    if pod.get("status", {}).get("phase") in FINISHED:
        return _stop(seen, 0, now)
    if past_deadline(seen, now) or is_finished(seen):
        return _stop(seen, _grace(pod), now)
    return _run(seen, back_off, now)


def is_deleted(pod: Object) -> bool:
    """Whether the pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def past_deadline(seen: ObservedPod, now: Instant) -> bool:
    """Whether the pod has used up its `activeDeadlineSeconds`."""
    return any(now.boot >= deadline for deadline in _deadline(seen))


def restarts_after(spec: dict[str, Any], pod: Object, code: int) -> bool:
    """Whether a container with this exit code restarts."""
    policy = "Always" if is_sidecar(spec) else pod["spec"].get("restartPolicy", "Always")
    if policy == "Always":
        # An ordinary init container is done after a success, whatever the policy.
        return code != 0 or spec["name"] not in _ordinary_init_names(pod)
    return bool(policy == "OnFailure" and code != 0)


def is_finished(seen: ObservedPod) -> bool:
    """Whether the pod has succeeded or failed: no container but sidecars will run again."""
    return init_failed(seen) or all(
        (ended := seen.container(spec["name"]).exit) is not None
        and not restarts_after(spec, seen.pod, ended.code)
        for spec in main_containers(seen.pod)
    )


def init_failed(seen: ObservedPod) -> bool:
    """Whether an init container failed for good."""
    return any(
        (ended := seen.container(spec["name"]).exit) is not None
        and ended.code != 0
        and not restarts_after(spec, seen.pod, ended.code)
        for spec in init_containers(seen.pod)
    )


def is_initialized(seen: ObservedPod) -> bool:
    """Whether all init containers are done and all sidecars have started."""
    return next(_unfinished_init(seen), None) is None


def restart_at(container: Container, back_off: RestartBackoff) -> float:
    """When an ended container may restart, in seconds since boot."""
    assert container.exit is not None, "only an ended container is started again"  # noqa: S101
    return container.exit.finished.boot + back_off.delay(crashes_after(container, back_off))


def crashes_after(container: Container, back_off: RestartBackoff) -> int:
    """The number of consecutive crashes, with the latest run."""
    ended = container.exit
    if ended is None:
        return container.crashes
    lasted = ended.finished.boot - ended.started.boot
    return back_off.crashes(container.crashes, lasted)


def _run(seen: ObservedPod, back_off: RestartBackoff, now: Instant) -> PodPlan:
    """The plan for a pod that should run: start containers, and stop unhealthy ones."""
    actions: list[Action] = []
    wakes: list[float] = []
    for spec in _wanted(seen):
        container = seen.container(spec["name"])
        if container.run is None:
            actions.append(Start(container=spec["name"], restarts=0, crashes=0))
        elif container.running:
            if container.run.stopping_since or is_unhealthy(spec, container.run):
                grace = _probe_grace(spec, container.run, seen.pod)
                _collect(_stop_one(spec, container.run, grace, now), actions, wakes)
        elif container.exit and restarts_after(spec, seen.pod, container.exit.code):
            at = restart_at(container, back_off)
            if at <= now.boot:
                actions.append(
                    Start(
                        container=spec["name"],
                        restarts=container.restarts + 1,
                        crashes=crashes_after(container, back_off),
                    )
                )
            else:
                wakes.append(at)
    wakes += _deadline(seen)
    return PodPlan(actions=tuple(actions), wake=min(wakes, default=None))


def _wanted(seen: ObservedPod) -> Iterator[dict[str, Any]]:
    """The containers that should run now: sidecars so far and the next init container, or all."""
    waiting_for = next(_unfinished_init(seen), None)
    for spec in init_containers(seen.pod):
        if is_sidecar(spec) or spec is waiting_for:
            yield spec
        if spec is waiting_for:
            return
    yield from main_containers(seen.pod)


def _unfinished_init(seen: ObservedPod) -> Iterator[dict[str, Any]]:
    """The init containers for which later containers wait, in order."""
    for spec in init_containers(seen.pod):
        container = seen.container(spec["name"])
        if is_sidecar(spec):
            # After a sidecar's later crash the containers behind it do not wait again.
            if not has_started(spec, container) and not _passed(spec, seen):
                yield spec
        elif container.exit is None or container.exit.code != 0:
            yield spec


def _passed(sidecar: dict[str, Any], seen: ObservedPod) -> bool:
    """Whether a container behind the sidecar was ever started."""
    specs = list(all_containers(seen.pod))
    later = specs[specs.index(sidecar) + 1 :]
    return any(seen.container(spec["name"]).run is not None for spec in later)


def is_unhealthy(spec: dict[str, Any], run: Run) -> bool:
    """Whether the startup or liveness probe of the run has failed."""
    if "startupProbe" in spec and not run.health.startup:
        return run.health.startup is False
    return "livenessProbe" in spec and run.health.liveness is False


def _stop(seen: ObservedPod, grace: float, now: Instant, then: Action | None = None) -> PodPlan:
    """The plan that stops a pod, sidecars last and in reverse order; `then` is the last action."""
    actions: list[Action] = []
    wakes: list[float] = []
    running = [spec for spec in all_containers(seen.pod) if seen.container(spec["name"]).running]
    sidecars = [spec for spec in running if is_sidecar(spec)]
    turn = [spec for spec in running if not is_sidecar(spec)] or sidecars[-1:]
    for spec in turn if grace else running:
        run = seen.container(spec["name"]).run
        if run is not None:
            _collect(_stop_one(spec, run, grace, now), actions, wakes)
    if not running and then:
        actions.append(then)
    return PodPlan(actions=tuple(actions), wake=min(wakes, default=None))


def _stop_one(spec: dict[str, Any], run: Run, grace: float, now: Instant) -> Action | float | None:
    """The next action that stops a run, or the time of the next look."""
    name = spec["name"]
    if run.killed:
        return None
    if grace <= 0:
        return Kill(container=name)
    if run.stopping_since is None:
        if (spec.get("lifecycle") or {}).get("preStop"):
            return RunPreStop(container=name, seconds=grace)
        return Terminate(container=name)
    end = run.stopping_since.boot + grace
    if run.terminated is None:
        return end if run.pre_stop_pending and now.boot < end else Terminate(container=name)
    if run.terminated.boot > run.stopping_since.boot:
        end = max(end, run.terminated.boot + GRACE_AFTER_PRE_STOP)
    return Kill(container=name) if now.boot >= end else end


def _collect(step: Action | float | None, actions: list[Action], wakes: list[float]) -> None:
    """Add a step to the actions or to the times."""
    if isinstance(step, float):
        wakes.append(step)
    elif step is not None:
        actions.append(step)


def _ordinary_init_names(pod: Object) -> set[str]:
    return {spec["name"] for spec in init_containers(pod) if not is_sidecar(spec)}


def _grace(pod: Object) -> float:
    return float(pod["spec"].get("terminationGracePeriodSeconds", 30))


def _deletion_grace(pod: Object) -> float:
    return float(pod["metadata"].get("deletionGracePeriodSeconds", _grace(pod)))


def _probe_grace(spec: dict[str, Any], run: Run, pod: Object) -> float:
    """The grace period after a failed probe, which may have its own."""
    which = "livenessProbe" if run.health.startup is not False else "startupProbe"
    own = (spec.get(which) or {}).get("terminationGracePeriodSeconds")
    return float(own) if own is not None else _grace(pod)


def _deadline(seen: ObservedPod) -> list[float]:
    """The pod's deadline in seconds since boot; empty if it has none."""
    seconds = seen.pod["spec"].get("activeDeadlineSeconds")
    return [seen.began.boot + seconds] if seconds and seen.began else []
