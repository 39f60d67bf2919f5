"""The node without its API server: processes go on, and what happened is told afterwards."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.api.meta import Object
from quarterdeck.localcluster import ControlPlane
from quarterdeck.testing.plugin import NewControlPlane
from quarterdeck.testing.this_machine import ThisMachine

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing")


@pytest.fixture
def plane(new_control_plane: NewControlPlane) -> ControlPlane:
    """A control plane of this test alone, with the node."""
    plane = new_control_plane()
    plane.add_this_machine(["--back-off-first=0.2", "--back-off-maximum=0.2"])
    plane.start("this-machine")
    return plane


def status(seen: Object) -> dict[str, Any]:
    statuses = seen["status"].get("containerStatuses")
    return dict(statuses[0]) if statuses else {"state": {}, "restartCount": 0}


def test_containers_are_restarted_while_there_is_no_api_server(
    plane: ControlPlane, tmp_path: Path
) -> None:
    """Their restarts are counted, and the API server is told when it is back."""
    node = ThisMachine(plane, "default")
    runs = tmp_path / "runs"
    runs.mkdir()
    script = "date +%s%N >> /runs/log; sleep 0.3; exit 1"
    main = {
        "name": "main",
        "image": "quarterdeck",
        "command": ["sh", "-c", script],
        "volumeMounts": [{"name": "runs", "mountPath": "/runs"}],
    }
    volume = {"name": "runs", "hostPath": {"path": str(runs)}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "crashes"}}
    spec = {"containers": [main], "volumes": [volume], "terminationGracePeriodSeconds": 1}
    node.apply(pod | {"spec": spec})

    def count() -> int:
        return len((runs / "log").read_text().splitlines()) if (runs / "log").exists() else 0

    node.wait(count, lambda seen: seen >= 2)
    plane.stop("kube-apiserver")
    began, before = time.monotonic(), count()
    node.wait(count, lambda seen: seen >= before + 5)
    assert time.monotonic() - began < 30
    plane.start("kube-apiserver")
    after = count()
    told = node.wait_pod("crashes", lambda seen: status(seen)["restartCount"] + 1 >= after)
    assert status(told)["restartCount"] + 1 <= count()
