"""The node's agent killed with -9 at every step of a pod's life, and started again.

One pod for each step, all brought there, one kill: no process, mount or directory is left behind,
none runs twice, and each pod goes on as its policy says.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.integration.pods import needs_bubblewrap
from tests.objects import config_map, container, job, pod, sharing

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = needs_bubblewrap

FOREVER = "while :; do sleep 0.1; done"
STUBBORN = "trap 'echo told >> /runs/log' TERM"
"""Before anything is written: a first process without a handler does not hear SIGTERM."""


class Step(NamedTuple):
    """A pod, when it has come to the step, and how it must be after the kill."""

    script: str
    """Of its main container, after the line `main` that each run writes."""
    reached: Callable[[Object, list[str]], Any]
    """Given the pod and what its runs have written."""
    after: Callable[[Object | None, list[str]], Any]
    """The same; None for a pod that is gone."""
    deleted: bool = False
    """Somebody has asked for its end before the step is reached."""
    first: str = ""
    """What comes before that line."""
    init: str = ""
    main: dict[str, Any] = {}  # noqa: RUF012 - nobody changes it
    spec: dict[str, Any] = {}  # noqa: RUF012


def status(seen: Object | None, field: str = "containerStatuses") -> dict[str, Any]:
    statuses = (seen or {"status": {}})["status"].get(field)
    return dict(statuses[0]) if statuses else {"state": {}, "restartCount": 0}


def waits_for(seen: Object | None) -> str:
    return str(status(seen)["state"].get("waiting", {}).get("reason", ""))


def runs(seen: Object | None, *, restarts: int) -> bool:
    """Whether the main container runs, after so many restarts."""
    return (
        seen is not None
        and "running" in status(seen)["state"]
        and status(seen)["restartCount"] == restarts
    )


def lost(seen: Object | None) -> bool:
    """Whether the pod has failed because its process went with the agent."""
    ended = status(seen)["state"].get("terminated", {}) if seen else {}
    return (ended.get("exitCode"), ended.get("reason")) == (137, "ContainerStatusUnknown")


def phase(seen: Object | None) -> str:
    return str(seen["status"].get("phase", "")) if seen else ""


def gone(seen: Object | None, _: list[str]) -> bool:
    return seen is None


STEPS = {
    "waits-for-a-config-map": Step(
        script=FOREVER,
        main={"envFrom": [{"configMapRef": {"name": "late"}}]},
        reached=lambda seen, _: waits_for(seen) == "CreateContainerConfigError",
        after=lambda seen, log: runs(seen, restarts=0) and log == ["main"],
    ),
    "in-its-init-container": Step(
        script=FOREVER,
        init=f"echo init >> /runs/log; [ -e /runs/2nd ] || {{ touch /runs/2nd; {FOREVER}; }}",
        reached=lambda seen, log: (
            "running" in status(seen, "initContainerStatuses")["state"] and log == ["init"]
        ),
        after=lambda seen, log: (
            runs(seen, restarts=0)
            and status(seen, "initContainerStatuses")["restartCount"] == 1
            and log == ["init", "init", "main"]
        ),
    ),
    "runs": Step(
        script=FOREVER,
        reached=lambda seen, log: runs(seen, restarts=0) and log == ["main"],
        after=lambda seen, log: runs(seen, restarts=1) and log == ["main", "main"],
    ),
    "runs-and-is-never-restarted": Step(
        script=FOREVER,
        spec={"restartPolicy": "Never"},
        reached=lambda seen, log: runs(seen, restarts=0) and log == ["main"],
        after=lambda seen, log: lost(seen) and phase(seen) == "Failed" and log == ["main"],
    ),
    "has-succeeded": Step(
        script="true",
        spec={"restartPolicy": "Never"},
        reached=lambda seen, _: phase(seen) == "Succeeded",
        after=lambda seen, log: phase(seen) == "Succeeded" and log == ["main"],
    ),
    "crashes-and-backs-off": Step(
        script="exit 3",
        reached=lambda seen, _: (
            waits_for(seen) == "CrashLoopBackOff" and status(seen)["restartCount"] >= 2
        ),
        # Counted on from where it was: each run has a number of its own.
        after=lambda seen, log: (
            waits_for(seen) == "CrashLoopBackOff"
            and status(seen)["restartCount"] >= 3
            and log == ["main"] * (status(seen)["restartCount"] + 1)
        ),
    ),
    "given-up-by-its-liveness-probe": Step(
        first=STUBBORN,
        script=FOREVER,
        main={
            "livenessProbe": {
                # It gives up nothing that does not listen yet.
                "exec": {"command": ["sh", "-c", "! [ -s /runs/log ] || [ -e /runs/2nd ]"]},
                "periodSeconds": 1,
                "failureThreshold": 1,
            }
        },
        reached=lambda _, log: log == ["main", "told"],
        after=lambda seen, log: status(seen)["restartCount"] == 1 and log.count("main") == 2,
    ),
    "deleted-and-in-its-hook": Step(
        script=FOREVER,
        deleted=True,
        main={
            "lifecycle": {
                "preStop": {"exec": {"command": ["sh", "-c", f"echo hook >> /runs/log; {FOREVER}"]}}
            }
        },
        reached=lambda _, log: log == ["main", "hook"],
        after=gone,
    ),
    "deleted-and-in-its-grace-period": Step(
        first=STUBBORN,
        script=FOREVER,
        deleted=True,
        reached=lambda _, log: log == ["main", "told"],
        after=gone,
    ),
}


class Lives:
    """The pods of all steps in one namespace, and what their runs write down."""

    def __init__(self, node: ThisMachine, directory: Path) -> None:
        self.node, self.directory = node, directory
        self.mark = f"{node.namespace}-mark"

    def create(self, name: str, step: Step) -> None:
        (self.directory / name).mkdir()
        script = f"{step.first or ':'}; echo main >> /runs/log; {step.script} # {self.mark}"
        main = container(script, **step.main)
        spec = {"terminationGracePeriodSeconds": 300, **step.spec}
        if step.init:
            spec["initContainers"] = [container(f"{step.init} # {self.mark}", "init")]
        self.node.apply(sharing(pod(name, main, **spec), self.directory / name))

    def log(self, name: str) -> list[str]:
        path = self.directory / name / "log"
        return path.read_text().splitlines() if path.exists() else []

    def any_runs(self, prefix: str) -> bool:
        """Whether one of the pods with this prefix has begun to run."""
        names = [path.name for path in self.directory.glob(f"{prefix}*")]
        return any(map(self.log, names))

    def pods(self) -> dict[str, Object]:
        return {pod["metadata"]["name"]: pod for pod in self.node.list("pods")}

    def wait(self, wanted: Callable[[str, Step, dict[str, Object]], Any]) -> None:
        """Until it is so for every step; fails with the names of those for which it is not."""

        def not_so() -> dict[str, Any]:
            pods = self.pods()
            return {
                name: [pods.get(name, {}).get("status"), self.log(name)]
                for name, step in STEPS.items()
                if not wanted(name, step, pods)
            }

        self.node.wait(not_so, lambda left: not left)

    def processes(self) -> list[str]:
        """The containers' own processes, bubblewrap's left out."""
        return [pid for pid, program in self.all_processes() if program == b"sh"]

    def all_processes(self) -> list[tuple[str, bytes]]:
        """The process id and the program of each process of a container, bubblewrap's too."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if any(self.mark.encode() in word for word in words):
                found.append((path.parent.name, words[0]))
        return found


@pytest.fixture
def plane(node_agent: ControlPlane) -> Iterator[ControlPlane]:
    """The shared control plane, whose agent runs again after the test whatever happens in it."""
    yield node_agent
    node_agent.start("this-machine")


def host_mounts() -> list[str]:
    return sorted(Path("/proc/self/mounts").read_text().splitlines())


STARTS = 3
"""How often the agent is killed while containers start."""


@pytest.mark.slow
def test_killed_at_every_step_of_a_pods_life(
    plane: ControlPlane, this_machine: ThisMachine, tmp_path: Path
) -> None:
    lives, mounts = Lives(this_machine, tmp_path), host_mounts()
    for name, step in STEPS.items():
        lives.create(name, step)
    lives.wait(lambda name, step, pods: lives.log(name) or step.init or step.main.get("envFrom"))
    for name in [name for name, step in STEPS.items() if step.deleted]:
        this_machine.kubectl("delete", "pod", name, "--wait=false")
    lives.wait(lambda name, step, pods: step.reached(pods[name], lives.log(name)))
    uids = {pod["metadata"]["uid"] for pod in lives.pods().values()}

    plane.kill("this-machine")
    this_machine.wait(lives.processes, lambda left: not left)
    # What happens while there is no agent: what a pod waited for comes, and a pod is created.
    this_machine.apply(config_map(name="late", KEY="value"))
    (tmp_path / "given-up-by-its-liveness-probe" / "2nd").touch()
    meanwhile = STEPS["runs"]._replace(after=lambda seen, log: log == ["main"])
    lives.create("bound-meanwhile", meanwhile)

    plane.start("this-machine")
    lives.wait(lambda name, step, pods: step.after(pods.get(name), lives.log(name)))
    this_machine.wait_pod("bound-meanwhile", lambda seen: runs(seen, restarts=0))
    assert lives.log("bound-meanwhile") == ["main"]

    running = [name for name, pod in lives.pods().items() if "running" in status(pod)["state"]]
    this_machine.wait(lives.processes, lambda found: len(found) == len(running))
    this_machine.kubectl("delete", "pods", "--all", "--grace-period=1")
    this_machine.wait(
        lambda: {path.name for path in plane.layout.pods.iterdir()}, lambda seen: not uids & seen
    )
    this_machine.wait(lives.processes, lambda left: not left)
    assert host_mounts() == mounts


def test_killed_while_containers_start_it_leaves_none(
    plane: ControlPlane, this_machine: ThisMachine, tmp_path: Path
) -> None:
    """A container that starts ties itself to its parent late; when the kill returns, it is gone."""
    lives = Lives(this_machine, tmp_path)
    for number in range(STARTS):
        for one in range(4):
            lives.create(f"starts-{number}-{one}", STEPS["runs"])
        # One has begun to run, so others are on their way.
        this_machine.wait(partial(lives.any_runs, f"starts-{number}-"))
        plane.kill("this-machine")
        assert lives.all_processes() == []
        plane.start("this-machine")
    this_machine.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    this_machine.wait(lives.processes, lambda left: not left)


def test_a_job_whose_pod_went_with_the_agent_is_not_run_again(
    plane: ControlPlane, this_machine: ThisMachine, tmp_path: Path
) -> None:
    """One that had succeeded stays so; one that had not has failed, as it says it may but once."""
    for name, script in (("done", "true"), ("half", FOREVER)):
        (tmp_path / name).mkdir()
        worker = pod(name, container(f"echo run >> /runs/log; {script}"))
        this_machine.apply(job(name, sharing(worker, tmp_path / name), backoffLimit=0))
    this_machine.wait(lambda: this_machine.get("job", "done")["status"].get("succeeded"))
    this_machine.wait(lambda: (tmp_path / "half" / "log").exists())
    plane.kill("this-machine")
    plane.start("this-machine")
    this_machine.wait(lambda: this_machine.get("job", "half")["status"].get("failed"))
    assert this_machine.get("job", "done")["status"]["succeeded"] == 1
    for name in ("done", "half"):
        assert (tmp_path / name / "log").read_text() == "run\n"
