"""What is to happen to a pod now: which containers to start, which to stop, and how.

`plan` is a pure function of the pod, what was seen of its containers, and the time since the
machine was booted: a clock that is set changes no decision. It starts
and stops nothing itself, and what it says can be carried out late, twice, or after a crash:
the next plan starts from what is then seen. What is reported is decided in `status`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from quarterdeck.api.meta import Object
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

AFTER_PRE_STOP = 2.0
"""Seconds for a process after SIGTERM, even when its preStop hook took the whole grace period."""

FINISHED = ("Succeeded", "Failed")


class BackOff(msgspec.Struct, frozen=True, kw_only=True):
    """How long an ended container waits before it is started again, in seconds."""

    first: float = 10
    """The wait before the second restart; the first comes at once, as with the kubelet."""
    factor: float = 2
    maximum: float = 300
    reset: float = 600
    """A run of at least this long makes the count start over."""

    def delay(self, crashes: int) -> float:
        """The seconds to wait after this many runs that ended in a row."""
        if crashes <= 1:
            return 0.0
        # The exponent is bounded, so that a pod that crashes for weeks does not overflow.
        grown = self.first * self.factor ** min(crashes - 2, 64)
        return min(self.maximum, grown)


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Start a container; the numbers go into its history."""

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
    """All processes are gone: remove the pod's files, then the pod from the API server."""


Action = Start | RunPreStop | Terminate | Kill | Remove


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now, and when to look again if nothing happens before."""

    actions: tuple[Action, ...] = ()
    wake: float | None = None
    """In seconds since boot."""


def plan(seen: ObservedPod, back_off: BackOff, now: Instant) -> Plan:
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
    """Whether somebody has asked for the pod to go."""
    return "deletionTimestamp" in pod["metadata"]


def past_deadline(seen: ObservedPod, now: Instant) -> bool:
    """Whether the pod has used up its `activeDeadlineSeconds`."""
    return any(now.boot >= deadline for deadline in _deadline(seen))


def restarts_after(spec: dict[str, Any], pod: Object, code: int) -> bool:
    """Whether a container that ended with this code is started again."""
    policy = "Always" if is_sidecar(spec) else pod["spec"].get("restartPolicy", "Always")
    if policy == "Always":
        # An ordinary init container is done when it succeeds, whatever the policy.
        return code != 0 or spec["name"] not in _ordinary_init_names(pod)
    return bool(policy == "OnFailure" and code != 0)


def is_finished(seen: ObservedPod) -> bool:
    """Whether no container but sidecars will run again: the pod succeeded or failed."""
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


def restart_at(container: Container, back_off: BackOff) -> float:
    """When an ended container may be started again, in seconds since boot."""
    assert container.exit is not None, "only an ended container is started again"  # noqa: S101
    return container.exit.finished.boot + back_off.delay(crashes_after(container, back_off))


def crashes_after(container: Container, back_off: BackOff) -> int:
    """How many runs in a row have ended before the reset, the latest included."""
    ended = container.exit
    if ended is None:
        return container.crashes
    lasted = ended.finished.boot - ended.started.boot
    return 1 if lasted >= back_off.reset else container.crashes + 1


def _run(seen: ObservedPod, back_off: BackOff, now: Instant) -> Plan:
    """Start what should run, stop what is not healthy."""
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
    return Plan(actions=tuple(actions), wake=min(wakes, default=None))


def _wanted(seen: ObservedPod) -> Iterator[dict[str, Any]]:
    """The containers whose turn it is: sidecars so far and the next init container, or all."""
    waiting_for = next(_unfinished_init(seen), None)
    for spec in init_containers(seen.pod):
        if is_sidecar(spec) or spec is waiting_for:
            yield spec
        if spec is waiting_for:
            return
    yield from main_containers(seen.pod)


def _unfinished_init(seen: ObservedPod) -> Iterator[dict[str, Any]]:
    """The init containers that hold the next one back, in order."""
    for spec in init_containers(seen.pod):
        container = seen.container(spec["name"])
        if is_sidecar(spec):
            # One that crashes later does not hold back again what it once let pass.
            if not has_started(spec, container) and not _passed(spec, seen):
                yield spec
        elif container.exit is None or container.exit.code != 0:
            yield spec


def _passed(sidecar: dict[str, Any], seen: ObservedPod) -> bool:
    """Whether a container after the sidecar was ever started."""
    specs = list(all_containers(seen.pod))
    later = specs[specs.index(sidecar) + 1 :]
    return any(seen.container(spec["name"]).run is not None for spec in later)


def is_unhealthy(spec: dict[str, Any], run: Run) -> bool:
    """Whether its startup or liveness probe has given the run up."""
    if "startupProbe" in spec and not run.health.startup:
        return run.health.startup is False
    return "livenessProbe" in spec and run.health.liveness is False


def _stop(seen: ObservedPod, grace: float, now: Instant, then: Action | None = None) -> Plan:
    """Stop what runs, sidecars last and in reverse order; `then` comes when nothing does."""
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
    return Plan(actions=tuple(actions), wake=min(wakes, default=None))


def _stop_one(spec: dict[str, Any], run: Run, grace: float, now: Instant) -> Action | float | None:
    """The next step of stopping a run, or when to look again."""
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
        end = max(end, run.terminated.boot + AFTER_PRE_STOP)
    return Kill(container=name) if now.boot >= end else end


def _collect(step: Action | float | None, actions: list[Action], wakes: list[float]) -> None:
    """Sort a step into what is done now and when to look again."""
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
    """The grace period of a run that a probe gave up; a probe may have its own."""
    which = "livenessProbe" if run.health.startup is not False else "startupProbe"
    own = (spec.get(which) or {}).get("terminationGracePeriodSeconds")
    return float(own) if own is not None else _grace(pod)


def _deadline(seen: ObservedPod) -> list[float]:
    """When the pod must have ended, in seconds since boot, if it must."""
    seconds = seen.pod["spec"].get("activeDeadlineSeconds")
    return [seen.began.boot + seconds] if seconds and seen.began else []
