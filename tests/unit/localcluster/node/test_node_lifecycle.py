"""What happens to a pod, decided without a process, a server or a clock of its own."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.node.pod.adoption import adopt
from quarterdeck.localcluster.node.pod.containers import (
    Container,
    Exit,
    ObservedPod,
    ProbeResults,
    Run,
)
from quarterdeck.localcluster.node.pod.exits import LastRun, exit_path, last_run, write_exit
from quarterdeck.localcluster.node.pod.lifecycle import (
    CONTAINER_BACKOFF,
    Action,
    Kill,
    PodPlan,
    Remove,
    RunPreStop,
    Start,
    Terminate,
    plan,
)
from quarterdeck.localcluster.node.pod.status import pod_status
from quarterdeck.localcluster.node.times import Instant

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
BACK_OFF = msgspec.structs.replace(CONTAINER_BACKOFF, maximum=60)


def after(seconds: float, jumped: float = 0) -> Instant:
    """So many seconds after noon; `jumped`: by so many the clock on the wall is wrong."""
    return Instant(NOON + timedelta(seconds=seconds + jumped), seconds)


T0 = after(0)


def pod(*containers: dict[str, Any], deleted: float | None = None, **spec: Any) -> Object:
    meta: Object = {"name": "p", "namespace": "n", "uid": "u"}
    if deleted is not None:
        meta |= {"deletionTimestamp": "2026-03-01T12:00:00Z", "deletionGracePeriodSeconds": deleted}
    return {"metadata": meta, "spec": {"containers": list(containers), **spec}}


def box(name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "quarterdeck", **more}


def running(since: float = 0, health: ProbeResults | None = None, **run: Any) -> Container:
    health = health or ProbeResults()
    return Container(run=Run(container_id="x", started=after(since), health=health, **run))


def ended(code: int = 0, at: float = 0, lasted: float = 1, **history: Any) -> Container:
    end = Exit(code=code, started=after(at - lasted), finished=after(at))
    return Container(run=Run(container_id="x", started=end.started, exit=end), **history)


def planned(the_pod: Object, now: float = 0, **containers: Container) -> PodPlan:
    return plan(observed(the_pod, containers), BACK_OFF, after(now))


def reported(the_pod: Object, now: float = 0, **containers: Container) -> Object:
    return pod_status(observed(the_pod, containers), BACK_OFF, after(now))


def observed(the_pod: Object, containers: dict[str, Container]) -> ObservedPod:
    return ObservedPod(pod=the_pod, containers=containers, began=T0)


def start(name: str = "main", restarts: int = 0, crashes: int = 0) -> Start:
    return Start(container=name, restarts=restarts, crashes=crashes)


PROBED: dict[str, Any] = {"livenessProbe": {}, "startupProbe": {}}
HOOKED = box(lifecycle={"preStop": {"exec": {"command": ["x"]}}})


@pytest.mark.parametrize(
    ("the_pod", "containers", "now", "actions"),
    [
        pytest.param(pod(box()), {}, 0, (start(),), id="a new pod's container is started"),
        pytest.param(pod(box()), {"main": running()}, 0, (), id="one that runs is left alone"),
        pytest.param(
            pod(box(), initContainers=[box("i1"), box("i2")]),
            {},
            0,
            (start("i1"),),
            id="the first init container comes first, alone",
        ),
        pytest.param(
            pod(box(), initContainers=[box("i1"), box("i2")]),
            {"i1": ended()},
            0,
            (start("i2"),),
            id="the second init container follows the first",
        ),
        pytest.param(
            pod(box(), initContainers=[box("i1")]),
            {"i1": ended(1)},
            0,
            (start("i1", 1, 1),),
            id="an init container that failed is tried again",
        ),
        pytest.param(
            pod(box(), initContainers=[box("i1")], restartPolicy="Never"),
            {"i1": ended(1)},
            0,
            (),
            id="an init container that failed for good starts nothing more",
        ),
        pytest.param(
            pod(box(), initContainers=[box("side", restartPolicy="Always"), box("i2")]),
            {"side": running()},
            0,
            (start("i2"),),
            id="a sidecar that has started lets the next one pass",
        ),
        pytest.param(
            pod(box(), initContainers=[box("side", restartPolicy="Always", startupProbe={})]),
            {"side": running()},
            0,
            (),
            id="a sidecar whose startup probe has not passed holds the others back",
        ),
        pytest.param(
            pod(box(), restartPolicy="Never"),
            {"main": ended(1)},
            100,
            (),
            id="restartPolicy Never restarts nothing",
        ),
        pytest.param(
            pod(box(), restartPolicy="OnFailure"),
            {"main": ended(0)},
            100,
            (),
            id="restartPolicy OnFailure leaves success alone",
        ),
        pytest.param(
            pod(box(), restartPolicy="OnFailure"),
            {"main": ended(3)},
            0,
            (start("main", 1, 1),),
            id="restartPolicy OnFailure restarts a failure, the first time at once",
        ),
        pytest.param(
            pod(box()),
            {"main": ended(0, restarts=1, crashes=1)},
            9,
            (),
            id="the second restart waits for the back-off",
        ),
        pytest.param(
            pod(box()),
            {"main": ended(0, restarts=1, crashes=1)},
            10,
            (start("main", 2, 2),),
            id="and comes when it is over",
        ),
        pytest.param(
            pod(box()),
            {"main": ended(1, lasted=600, restarts=7, crashes=7)},
            0,
            (start("main", 8, 1),),
            id="a long run resets the back-off",
        ),
        pytest.param(
            pod(box(**PROBED)),
            {"main": running(health=ProbeResults(startup=True, liveness=False))},
            0,
            (Terminate(container="main"),),
            id="a failed liveness probe stops the process",
        ),
        pytest.param(
            pod(box(**PROBED)),
            {"main": running(health=ProbeResults(liveness=False))},
            0,
            (),
            id="liveness does not count before startup has passed",
        ),
        pytest.param(
            pod(box(**PROBED)),
            {"main": running(health=ProbeResults(startup=False))},
            0,
            (Terminate(container="main"),),
            id="a failed startup probe stops the process",
        ),
        pytest.param(
            pod(box(), deleted=30),
            {"main": running()},
            0,
            (Terminate(container="main"),),
            id="deletion begins with SIGTERM",
        ),
        pytest.param(
            pod(HOOKED, deleted=30),
            {"main": running()},
            0,
            (RunPreStop(container="main", seconds=30),),
            id="deletion begins with the preStop hook where there is one",
        ),
        pytest.param(
            pod(HOOKED, deleted=30),
            {"main": running(stopping_since=T0, pre_stop_pending=True)},
            29,
            (),
            id="the hook is waited for",
        ),
        pytest.param(
            pod(HOOKED, deleted=30),
            {"main": running(stopping_since=T0)},
            5,
            (Terminate(container="main"),),
            id="SIGTERM follows the hook",
        ),
        pytest.param(
            pod(HOOKED, deleted=30),
            {"main": running(stopping_since=T0, pre_stop_pending=True)},
            30,
            (Terminate(container="main"),),
            id="a hook that takes too long is not waited for",
        ),
        pytest.param(
            pod(HOOKED, deleted=30),
            {"main": running(stopping_since=T0, terminated=after(30))},
            31,
            (),
            id="after such a hook the process still gets a moment",
        ),
        pytest.param(
            pod(box(), deleted=30),
            {"main": running(stopping_since=T0, terminated=T0)},
            29,
            (),
            id="the grace period is granted",
        ),
        pytest.param(
            pod(box(), deleted=30),
            {"main": running(stopping_since=T0, terminated=T0)},
            30,
            (Kill(container="main"),),
            id="SIGKILL ends it",
        ),
        pytest.param(
            pod(box(), deleted=1),
            {"main": running(stopping_since=T0, terminated=T0)},
            1,
            (Kill(container="main"),),
            id="a short grace period is not made longer",
        ),
        pytest.param(
            pod(box(), deleted=30),
            {"main": running(stopping_since=T0, terminated=T0, killed=True)},
            31,
            (),
            id="SIGKILL is sent once",
        ),
        pytest.param(
            pod(box(), deleted=0),
            {"main": running()},
            0,
            (Kill(container="main"),),
            id="no grace period means SIGKILL at once",
        ),
        pytest.param(
            pod(box(), deleted=30),
            {"main": ended(143)},
            0,
            (Remove(),),
            id="the pod is removed when its processes are gone",
        ),
        pytest.param(
            pod(box(), deleted=30), {}, 0, (Remove(),), id="a pod that never ran is removed"
        ),
        pytest.param(
            pod(box(), deleted=30, initContainers=[box("side", restartPolicy="Always")]),
            {"main": running(), "side": running()},
            0,
            (Terminate(container="main"),),
            id="a sidecar is stopped after the others",
        ),
        pytest.param(
            pod(box(), restartPolicy="Never", initContainers=[box("side", restartPolicy="Always")]),
            {"main": ended(), "side": running()},
            0,
            (Terminate(container="side"),),
            id="a finished pod's sidecar is stopped",
        ),
    ],
)
def test_actions(
    the_pod: Object, containers: dict[str, Container], now: float, actions: tuple[Action, ...]
) -> None:
    assert planned(the_pod, now, **containers).actions == actions


def test_a_finished_pod_is_left_alone() -> None:
    """Succeeded and Failed are final: nothing runs again, whatever the policy."""
    finished = pod(box()) | {"status": {"phase": "Failed"}}
    assert planned(finished) == PodPlan()
    assert reported(finished) == {"phase": "Failed"}


def test_the_active_deadline_stops_the_pod() -> None:
    """A pod past its deadline is stopped, then Failed with DeadlineExceeded."""
    late = pod(box(), activeDeadlineSeconds=5)
    assert planned(late, 4, main=running()).wake == 5
    assert planned(late, 5, main=running()).actions == (Terminate(container="main"),)
    assert reported(late, 6, main=ended(143, at=6))["reason"] == "DeadlineExceeded"


@pytest.mark.parametrize(
    ("crashes", "seconds"), [(0, 0), (1, 0), (2, 10), (3, 20), (4, 40), (5, 60), (10_000, 60)]
)
def test_back_off_grows_to_its_maximum(crashes: int, seconds: float) -> None:
    assert BACK_OFF.delay(crashes) == seconds


def conditions(status: Object) -> dict[str, str]:
    return {entry["type"]: entry["status"] for entry in status["conditions"]}


def test_status_of_a_running_pod() -> None:
    """A running container without probes is ready, and so is its pod."""
    status = reported(pod(box()), main=running())
    assert status["phase"] == "Running"
    assert conditions(status)["Ready"] == "True"
    (container,) = status["containerStatuses"]
    assert container["state"] == {"running": {"startedAt": "2026-03-01T12:00:00Z"}}
    assert container["ready"]
    assert container["started"]


def test_status_of_a_crash_loop() -> None:
    """The wait shows as CrashLoopBackOff, with the end that led to it beside it."""
    status = reported(pod(box()), 5, main=ended(3, restarts=1, crashes=1))
    (container,) = status["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert container["state"]["waiting"]["message"].startswith("back-off 10s")
    assert container["lastState"]["terminated"]["exitCode"] == 3
    assert container["restartCount"] == 1
    assert status["phase"] == "Running"


@pytest.mark.parametrize(
    ("the_pod", "containers", "phase"),
    [
        pytest.param(pod(box()), {}, "Pending", id="nothing started: Pending"),
        pytest.param(
            pod(box(), initContainers=[box("i")]),
            {"i": running()},
            "Pending",
            id="init containers: Pending",
        ),
        pytest.param(
            pod(box(), restartPolicy="Never"),
            {"main": ended(0)},
            "Succeeded",
            id="all ended well: Succeeded",
        ),
        pytest.param(
            pod(box(), restartPolicy="Never"),
            {"main": ended(2)},
            "Failed",
            id="one did not: Failed",
        ),
        pytest.param(
            pod(box(), box("b"), restartPolicy="Never"),
            {"main": ended(2), "b": running()},
            "Running",
            id="one still runs: Running",
        ),
        pytest.param(
            pod(box(), restartPolicy="Never", initContainers=[box("i")]),
            {"i": ended(1)},
            "Failed",
            id="an init container failed for good: Failed",
        ),
        pytest.param(
            pod(box(), deleted=5), {"main": ended(0)}, "Succeeded", id="deleted and ended well"
        ),
        pytest.param(
            pod(box(), deleted=5), {"main": ended(137)}, "Failed", id="deleted and killed"
        ),
    ],
)
def test_phase(the_pod: Object, containers: dict[str, Container], phase: str) -> None:
    assert reported(the_pod, 0, **containers)["phase"] == phase


def test_readiness_needs_the_probe_and_the_gates() -> None:
    """A readiness probe that has not passed, or a closed gate, keeps the pod from being ready."""
    probed = pod(box(readinessProbe={}))
    assert conditions(reported(probed, main=running()))["Ready"] == "False"
    ready = running(health=ProbeResults(readiness=True))
    assert conditions(reported(probed, main=ready))["Ready"] == "True"
    gated = pod(box(), readinessGates=[{"conditionType": "x/y"}])
    assert conditions(reported(gated, main=running()))["Ready"] == "False"
    gated["status"] = {"conditions": [{"type": "x/y", "status": "True"}]}
    assert conditions(reported(gated, main=running()))["Ready"] == "True"
    assert conditions(reported(gated, main=running()))["x/y"] == "True"


def test_a_report_repeated_later_says_the_same() -> None:
    """A settled pod gives the same status at any later time: nothing to write."""
    the_pod = pod(box())
    the_pod["status"] = reported(the_pod, main=running())
    assert reported(the_pod, 500, main=running()) == the_pod["status"]


def states(the_pod: Object, **begun: int | LastRun) -> dict[str, Container]:
    runs = {name: LastRun(it) if isinstance(it, int) else it for name, it in begun.items()}
    return adopt(the_pod, runs, after(50))


def test_a_run_that_died_with_the_agent_is_started_again() -> None:
    """Found running by its status: ended with 137, started again at once, counted."""
    the_pod = pod(box())
    the_pod["status"] = reported(the_pod, main=running())
    containers = states(the_pod)
    assert planned(the_pod, 50, **containers).actions == (start("main", 1, 1),)


def test_a_never_pod_that_died_with_the_agent_has_failed() -> None:
    the_pod = pod(box(), restartPolicy="Never")
    the_pod["status"] = reported(the_pod, main=running())
    containers = states(the_pod)
    assert planned(the_pod, 50, **containers).actions == ()
    status = reported(the_pod, 50, **containers)
    assert status["phase"] == "Failed"
    terminated = status["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (137, "ContainerStatusUnknown")


def test_a_run_begun_but_never_reported_is_not_begun_again() -> None:
    """A Job's container whose start was not reported before the agent died does not run twice."""
    the_pod = pod(box(), restartPolicy="Never")
    the_pod["status"] = reported(the_pod)
    assert planned(the_pod, 50, **states(the_pod)).actions == (start(),)
    assert planned(the_pod, 50, **states(the_pod, main=0)).actions == ()


def test_an_end_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    """On a machine that was booted since; what is spoilt tells nothing but that it was begun."""
    path = tmp_path / "7.log"
    path.touch()
    (tmp_path / "6.log").touch()
    assert last_run(tmp_path, after(50)) == LastRun(7)
    write_exit(path, Exit(code=3, started=after(1), finished=after(9), reason="Error"))
    rebooted = Instant(after(50).wall, 5.0)
    begun = last_run(tmp_path, rebooted)
    assert begun is not None
    assert begun.exit is not None
    assert (begun.number, begun.exit.code, begun.exit.reason) == (7, 3, "Error")
    assert (begun.exit.finished, begun.exit.started.boot) == (Instant(after(9).wall, -36), -44)
    exit_path(path).write_text("{")
    assert last_run(tmp_path, after(50)) == LastRun(7)
    assert last_run(tmp_path / "none", after(50)) is None


def test_a_run_that_ended_unreported_is_known_by_what_is_on_disk() -> None:
    """A Job's container that was done while nobody could be told: done, and not run again."""
    the_pod = pod(box(), restartPolicy="Never")
    the_pod["status"] = reported(the_pod, main=running())
    done = LastRun(0, Exit(code=0, started=T0, finished=after(9)))
    containers = states(the_pod, main=done)
    assert planned(the_pod, 50, **containers).actions == ()
    status = reported(the_pod, 50, **containers)
    assert status["phase"] == "Succeeded"
    terminated = status["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["finishedAt"]) == (0, "2026-03-01T12:00:09Z")


def test_a_later_run_counts_even_where_the_status_tells_of_an_end() -> None:
    """The status is older than the disk: the run after the one it tells of was begun already."""
    the_pod = pod(box(), restartPolicy="OnFailure")
    the_pod["status"] = reported(the_pod, main=ended(3, restarts=1))
    assert "terminated" in the_pod["status"]["containerStatuses"][0]["state"]
    begun = states(the_pod, main=2)
    assert planned(the_pod, 50, **begun).actions == (start("main", 3, 1),)
    done = LastRun(2, Exit(code=0, started=T0, finished=after(9)))
    assert planned(the_pod, 50, **states(the_pod, main=done)).actions == ()


def test_a_crash_loop_goes_on_where_it_was() -> None:
    """Back-off and restart count survive the agent."""
    the_pod = pod(box())
    the_pod["status"] = reported(the_pod, main=ended(3, at=45, restarts=2, crashes=2))
    containers = states(the_pod, main=2)
    assert planned(the_pod, 50, **containers) == PodPlan(wake=45 + 20)


@st.composite
def pods(draw: st.DrawFn) -> Object:
    names = iter("abcdefgh")
    maybe_hook = st.sampled_from([{}, {"lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}])
    maybe_sidecar = st.sampled_from([{}, {"restartPolicy": "Always"}])
    inits = [box(next(names), **draw(maybe_sidecar)) for _ in range(draw(st.integers(0, 3)))]
    mains = [box(next(names), **draw(maybe_hook)) for _ in range(draw(st.integers(1, 3)))]
    policy = draw(st.sampled_from(["Always", "OnFailure", "Never"]))
    return pod(*mains, initContainers=inits, restartPolicy=policy, terminationGracePeriodSeconds=20)


class World:
    """Carries plans out, and checks on each that it made sense."""

    def __init__(self, the_pod: Object) -> None:
        self.pod, self.now, self.removed = the_pod, 0.0, False
        self.containers: dict[str, Container] = {}
        self.starts: list[str] = []
        self.begun: dict[str, LastRun] = {}
        self.jumped = 0.0

    def carry_out(self, action: Action) -> None:
        assert not self.removed
        match action:
            case Start(container=name, restarts=restarts, crashes=crashes):
                old = self.containers.get(name, Container())
                assert not old.running, "one container, one process"
                assert "deletionTimestamp" not in self.pod["metadata"]
                run = Run(container_id="x", started=self.moment)
                self.containers[name] = Container(
                    run=run, restarts=restarts, crashes=crashes, last=old.exit
                )
                self.starts.append(name)
                number = self.begun.get(name, LastRun(-1)).number
                assert restarts > number, "each run has a number of its own"
                self.begun[name] = LastRun(restarts)
            case RunPreStop(container=name):
                self.mark(name, stopping_since=self.moment, pre_stop_pending=True)
            case Terminate(container=name):
                since = self.run_of(name).stopping_since or self.moment
                self.mark(name, stopping_since=since, terminated=self.moment)
            case Kill(container=name):
                self.end(name, 137)
            case Remove():
                assert not any(container.running for container in self.containers.values())
                self.removed = True

    @property
    def moment(self) -> Instant:
        return after(self.now, self.jumped)

    def run_of(self, name: str) -> Run:
        run = self.containers[name].run
        assert run is not None
        return run

    def mark(self, name: str, **fields: Any) -> None:
        run = msgspec.structs.replace(self.run_of(name), **fields)
        self.containers[name] = msgspec.structs.replace(self.containers[name], run=run)

    def end(self, name: str, code: int) -> None:
        run = self.run_of(name)
        if run.exit is None:
            ended = Exit(code=code, started=run.started, finished=self.moment)
            self.mark(name, exit=ended)
            self.begun[name] = LastRun(self.containers[name].restarts, ended)

    def step(self, *, reported: bool = True) -> PodPlan:
        seen = ObservedPod(pod=self.pod, containers=self.containers)
        decided = plan(seen, BACK_OFF, self.moment)
        for action in decided.actions:
            self.carry_out(action)
        seen = ObservedPod(pod=self.pod, containers=self.containers)
        if reported:
            self.pod = self.pod | {"status": pod_status(seen, BACK_OFF, self.moment)}
        return decided

    def agent_is_killed(self) -> None:
        """All processes are gone; the pod's last status and the logs on disk are all there is."""
        self.containers = adopt(self.pod, self.begun, self.moment)


@settings(max_examples=150)
@given(pods(), st.data())
def test_an_agent_killed_at_any_moment_starts_nothing_twice(
    the_pod: Object, data: st.DataObject
) -> None:
    """Whether or not the last steps were reported: what must not be restarted is not."""
    world = World(the_pod)
    for _ in range(data.draw(st.integers(1, 10))):
        world.step(reported=data.draw(st.sampled_from([False, True])))
        alive = sorted(name for name, each in world.containers.items() if each.running)
        if alive and data.draw(st.sampled_from([False, True])):
            world.end(data.draw(st.sampled_from(alive)), data.draw(st.sampled_from([0, 1])))
        if data.draw(st.sampled_from([False, True])):
            world.agent_is_killed()
        world.now += data.draw(st.sampled_from([0.0, 15.0, 700.0]))
    if the_pod["spec"]["restartPolicy"] == "Never":
        sidecars = {s["name"] for s in the_pod["spec"]["initContainers"] if "restartPolicy" in s}
        ordinary = [name for name in world.starts if name not in sidecars]
        assert len(ordinary) == len(set(ordinary)), "Never means never twice"


@settings(max_examples=150)
@given(pods(), st.data())
def test_any_life_is_orderly_and_can_be_ended(the_pod: Object, data: st.DataObject) -> None:
    """Whatever ends when: one process per container, no restart after the end, and removal."""
    world = World(the_pod)
    for _ in range(data.draw(st.integers(0, 12))):
        world.step()
        was = world.pod["status"]["phase"]
        world.now += data.draw(st.sampled_from([0.0, 1.0, 15.0, 700.0]))
        alive = sorted(name for name, each in world.containers.items() if each.running)
        if alive and data.draw(st.sampled_from([False, True])):
            world.end(data.draw(st.sampled_from(alive)), data.draw(st.sampled_from([0, 1])))
        world.step()
        if was in ("Succeeded", "Failed"):
            assert world.pod["status"]["phase"] == was
    if the_pod["spec"]["restartPolicy"] == "Never":
        sidecars = {s["name"] for s in the_pod["spec"]["initContainers"] if "restartPolicy" in s}
        ordinary = [name for name in world.starts if name not in sidecars]
        assert len(ordinary) == len(set(ordinary)), "Never means never twice"
    meta = world.pod["metadata"] | {
        "deletionTimestamp": "2026-03-01T12:00:00Z",
        "deletionGracePeriodSeconds": 20,
    }
    world.pod = world.pod | {"metadata": meta}
    for _ in range(40):
        if world.removed:
            return
        decided = world.step()
        world.now = max(world.now, decided.wake or 0.0)
    raise AssertionError("the pod was never removed")


JUMPS = st.sampled_from([-1e7, -3600.0, -1.0, 0.0, 1.0, 3600.0, 1e7])


@settings(max_examples=150)
@given(
    pods(), st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0.0, 3.0, 15.0])), max_size=12)
)
def test_a_clock_that_is_set_changes_no_decision(
    the_pod: Object, life: list[tuple[int, float]]
) -> None:
    """Forwards, backwards, again and again: the same steps at the same times since boot."""

    def lived(jumps: list[float]) -> list[PodPlan]:
        world, plans = World(the_pod), []
        for (step, seconds), jump in zip(life, jumps, strict=True):
            world.jumped = jump
            plans.append(world.step())
            alive = sorted(name for name, each in world.containers.items() if each.running)
            if alive and step:
                world.end(alive[step % len(alive)], step % 2)
            world.now += seconds
        return plans

    steady = lived([0.0] * len(life))
    for jump in (-1e7, -3600.0, 3600.0, 1e7):
        assert lived([jump if number % 2 else 0.0 for number in range(len(life))]) == steady
        assert lived([jump] * len(life)) == steady


@pytest.mark.parametrize("jump", [-1e7, -30.0, 30.0, 1e7])
def test_the_grace_period_lasts_as_long_whatever_the_clock_says(jump: float) -> None:
    stopped = {"main": running(stopping_since=T0, terminated=T0)}
    seen = observed(pod(box(), deleted=30), stopped)
    assert plan(seen, BACK_OFF, after(29, jump)) == PodPlan(wake=30)
    assert plan(seen, BACK_OFF, after(30, jump)).actions == (Kill(container="main"),)


@pytest.mark.parametrize("jump", [-1e7, -30.0, 30.0, 1e7])
def test_the_active_deadline_comes_as_late_whatever_the_clock_says(jump: float) -> None:
    late = observed(pod(box(), activeDeadlineSeconds=50), {"main": running()})
    assert plan(late, BACK_OFF, after(49, jump)) == PodPlan(wake=50)
    assert plan(late, BACK_OFF, after(50, jump)).actions == (Terminate(container="main"),)


@given(JUMPS)
def test_statuses_tell_the_time_of_day(jump: float) -> None:
    """What people read is what the clock on the wall showed when it happened."""
    moment = after(5, jump)
    began = Container(run=Run(container_id="x", started=moment))
    seen = ObservedPod(pod=pod(box()), containers={"main": began}, began=T0)
    status = pod_status(seen, BACK_OFF, moment)
    told = status["containerStatuses"][0]["state"]["running"]["startedAt"]
    assert told == moment.wall.strftime("%Y-%m-%dT%H:%M:%SZ")


@given(JUMPS)
def test_a_clock_set_while_no_agent_ran_makes_no_wait_longer(jump: float) -> None:
    """All that is known then are times of day: the back-off is cut short at worst, never grown."""
    the_pod = pod(box())
    the_pod["status"] = reported(the_pod, 45, main=ended(3, at=45, restarts=2, crashes=2))
    containers = adopt(the_pod, {"main": LastRun(2)}, after(50, jump))
    decided = plan(observed(the_pod, containers), BACK_OFF, after(50, jump))
    if decided.wake is None:
        assert decided.actions == (start("main", 3, 3),)
    else:
        assert 50 <= decided.wake <= 50 + BACK_OFF.delay(3)


@given(JUMPS, st.floats(0, 1e6))
def test_what_was_is_never_in_the_future(jump: float, elapsed: float) -> None:
    now = after(elapsed, jump)
    was = now.at_wall_time(NOON)
    assert was.wall == NOON
    assert was.boot <= now.boot
    if jump == 0:
        assert was.boot == pytest.approx(0, abs=1e-3)
