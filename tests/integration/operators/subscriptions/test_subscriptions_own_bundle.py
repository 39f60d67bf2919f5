"""Our own bundle on the node `this-machine`: the config is seen in the operator's process."""

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.integration.operators.subscriptions.conftest import Cluster, write_catalog
from tests.objects import note
from tests.places import ROOT

from quarterdeck.localcluster import ControlPlane
from quarterdeck.localcluster.node.sandbox.entry import command_inside
from quarterdeck.localcluster.node.sandbox.lookup import find_entry
from quarterdeck.operators.subscriptions.catalog.bundles import (
    BundleDirectory,
    bundle_directories,
    read_bundle,
)
from quarterdeck.testing.operator_process import OperatorProcess
from quarterdeck.testing.this_machine import ThisMachine

if TYPE_CHECKING:
    from quarterdeck.api.meta import Object

EXAMPLES = ROOT / "docs" / "examples" / "bundles"
OLD, NEW = "sample-operator.v0.1.0", "sample-operator.v0.2.0"


@pytest.fixture
def own_bundles() -> list[BundleDirectory]:
    found = [read_bundle(directory) for directory in bundle_directories([EXAMPLES])]
    return [one for one in found if isinstance(one, BundleDirectory)]


def test_debug_logs_by_a_config_entry(
    control_plane: ControlPlane,
    operator: OperatorProcess,
    this_machine: ThisMachine,
    catalog_root: Path,
    own_bundles: list[BundleDirectory],
) -> None:
    """The document's scenario: `ARGS` is `-v=4`, in the process's log; also after an update."""
    cluster = Cluster(control_plane, this_machine.namespace)
    write_catalog(catalog_root / cluster.namespace, own_bundles)
    cluster.catalog_source(cluster.namespace)
    cluster.apply(note("first", "hello"))
    manual = {"startingCSV": OLD, "installPlanApproval": "Manual", "channel": "alpha"}
    cluster.subscribe("sample-operator", **manual)
    approve(cluster)
    cluster.wait_phase(OLD)
    pod = this_machine.wait(lambda: running(this_machine))
    this_machine.wait(lambda: cluster.find("configmap", "first"))
    assert debug_lines(this_machine, pod) == []

    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings"},
            "data": {"motto": "steady"},
        }
    )
    entry: Object = {
        "selector": {"matchLabels": {"k8s-app": "sample-operator"}},
        "env": [{"name": "ARGS", "value": "-v=4"}],
        "volumes": [{"name": "settings", "configMap": {"name": "settings"}}],
        "volumeMounts": [{"name": "settings", "mountPath": "/settings"}],
    }
    cluster.subscribe("sample-operator", **manual, config=[entry])
    pod = this_machine.wait(
        lambda: running(this_machine, without=pod), lambda found: found is not None
    )
    cluster.apply(note("second", "hello"))
    this_machine.wait(lambda: debug_lines(this_machine, pod))
    # The variable and the file as the container has them, not only as the Deployment says.
    seen = 'echo "$ARGS"; cat /settings/motto'
    assert inside(control_plane, this_machine, pod, seen) == "-v=4\nsteady"

    approve(cluster)
    cluster.wait_phase(NEW)
    pod = this_machine.wait(
        lambda: running(this_machine, without=pod), lambda found: found is not None
    )
    cluster.apply(note("third", "hello"))
    this_machine.wait(lambda: debug_lines(this_machine, pod))
    variables = cluster.env("sample-operator")
    assert variables["ARGS"]["value"] == "-v=4"
    assert variables["RELEASE_VERSION"]["value"] == "0.2.0"


def inside(plane: ControlPlane, this_machine: ThisMachine, pod: str, script: str) -> str:
    """What a script prints in the pod's container, entered as by `quarterdeck local exec`."""
    kubectl = str(plane.binaries.kubectl)
    entry = find_entry(plane.layout, kubectl, this_machine.namespace, pod, "")
    words, variables = command_inside(entry, ["/bin/sh", "-c", script])
    # Its orders are inherited descriptors.
    done = subprocess.run(
        words, env=variables, close_fds=False, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def approve(cluster: Cluster) -> None:
    cluster.wait_condition("sample-operator", "InstallPlanPending", "RequiresApproval")
    name = cluster.status("subscription", "sample-operator")["installPlanRef"]["name"]
    cluster.patch("installplan", name, {"spec": {"approved": True}})


def running(this_machine: ThisMachine, without: str = "") -> str | None:
    """The name of the only pod, once it is ready and no other one is left."""
    pods = this_machine.list("pod", "k8s-app=sample-operator")
    if len(pods) != 1 or pods[0]["metadata"]["name"] == without:
        return None
    conditions = (pods[0].get("status") or {}).get("conditions") or ()
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return str(pods[0]["metadata"]["name"]) if ready else None


def debug_lines(this_machine: ThisMachine, pod: str) -> list[str]:
    """The lines about ConfigMaps that were created, which only verbosity 4 shows."""
    lines = this_machine.logs(pod, check=False).splitlines()
    return [line for line in lines if " created " in line and "kind=ConfigMap" in line]
