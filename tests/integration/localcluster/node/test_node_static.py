"""Static pods on a real control plane, and without one."""

import json
from pathlib import Path

import pytest
from tests.integration.pods import needs_bubblewrap
from tests.objects import container, pod, sharing

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.plugin import NewControlPlane
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = needs_bubblewrap

NAME = "web-this-machine"


class Files:
    """The directory of manifests of a control plane, and what its pods wrote down."""

    def __init__(self, plane: ControlPlane, runs: Path) -> None:
        self.directory = plane.layout.manifests
        self.directory.mkdir(exist_ok=True)
        self.runs = runs
        runs.mkdir(exist_ok=True)

    def write(self, text: str) -> None:
        """A static pod that writes a line when it starts, and one when it is told to end."""
        script = f"echo {text} >> /runs/log; trap 'echo {text} ended >> /runs/log; exit 0' TERM; "
        script += f"echo up {text}; while :; do sleep 0.05; done"
        web = pod("web", container(script), terminationGracePeriodSeconds=9)
        beside = self.directory / ".web"
        beside.write_text(json.dumps(sharing(web, self.runs)))
        beside.rename(self.directory / "web.json")

    def said(self) -> list[str]:
        log = self.runs / "log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def plane(new_control_plane: NewControlPlane) -> ControlPlane:
    """A control plane of this test alone, with the node."""
    plane = new_control_plane()
    plane.add_this_machine(["--back-off-first=0.2"])
    plane.start("this-machine")
    return plane


def is_running(seen: Object) -> bool:
    statuses = seen["status"].get("containerStatuses")
    return bool(statuses and "running" in statuses[0]["state"])


def test_a_static_pod_lives_as_its_file_says(plane: ControlPlane, tmp_path: Path) -> None:
    """Mirrored, not to be deleted by kubectl, changed and removed with its file."""
    node, files = ThisMachine(plane, "default"), Files(plane, tmp_path / "runs")
    (files.directory / "broken.yaml").write_text("{")
    files.write("one")
    node.wait(files.said, lambda seen: seen == ["one"])
    told = node.wait(
        lambda: [
            event["note"]
            for event in node.list("events.events.k8s.io")
            if event["reason"] == "BrokenManifest"
        ]
    )
    assert f"{files.directory}/broken.yaml: not YAML" in told[0]
    node.wait(lambda: node.list("pods"))
    mirror = node.wait_pod(NAME, is_running)
    assert mirror["spec"]["nodeName"] == "this-machine"
    assert node.wait_logged(NAME, "up one")
    node.kubectl("delete", "pod", NAME, "--wait=false")
    node.wait(
        lambda: [pod for pod in node.list("pods") if is_running(pod)],
        lambda seen: seen and seen[0]["metadata"]["uid"] != mirror["metadata"]["uid"],
    )
    assert files.said() == ["one"], "the process never noticed"
    files.write("two")
    node.wait(files.said, lambda seen: seen == ["one", "one ended", "two"])
    node.wait(lambda: node.logs(NAME, check=False), lambda seen: "up two" in seen)
    (files.directory / "web.json").unlink()
    node.wait(files.said, lambda seen: seen[-1] == "two ended")
    node.wait(lambda: node.list("pods"), lambda seen: not seen)
    node.wait(lambda: not list(plane.layout.pods.iterdir()))


def test_a_static_pod_runs_when_there_is_no_api_server(plane: ControlPlane, tmp_path: Path) -> None:
    """Also when the agent starts while there is none; it is mirrored when there is one."""
    node, files = ThisMachine(plane, "default"), Files(plane, tmp_path / "runs")
    plane.stop("this-machine", "kube-apiserver")
    files.write("alone")
    plane.processes["this-machine"].start()
    node.wait(files.said, lambda seen: seen == ["alone"])
    plane.start("kube-apiserver")
    node.wait(lambda: [pod for pod in node.list("pods") if is_running(pod)])
    assert files.said() == ["alone"]
    # Its file goes while no agent runs: so does its mirror, and what it had on disk.
    plane.kill("this-machine")
    (files.directory / "web.json").unlink()
    plane.start("this-machine")
    node.wait(lambda: node.list("pods"), lambda seen: not seen)
    node.wait(lambda: not list(plane.layout.pods.iterdir()))
