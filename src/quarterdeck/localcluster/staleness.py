"""The staleness checker in a local cluster: a static pod of `this-machine`, from `deploy`.

The delivered manifest, with what differs here: the interval is short enough to watch, and the pod
has an address of its own, so that clusters side by side do not collide.
"""

import copy
import tempfile
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import yaml

from quarterdeck.api.meta import Object
from quarterdeck.localcluster.components import THIS_MACHINE
from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.definitions import definitions_directory
from quarterdeck.localcluster.errors import NotReady
from quarterdeck.localcluster.static_pods import StaticPod

INTERVAL = timedelta(minutes=1)
USER = "system:quarterdeck:staleness"
NAMESPACE = "kube-system"
POD = f"staleness-{THIS_MACHINE}"
_LIMIT = 90.0


def deploy_staleness(
    plane: ControlPlane, interval: timedelta = INTERVAL, options: Sequence[str] = ()
) -> None:
    """Run the checker, with these options beside its own, and return when it is ready."""
    directory = definitions_directory().parent / "staleness"
    rights = f"--filename={directory / 'rbac.yaml'}"
    plane.kubectl("apply", "--server-side", "--force-conflicts", rights)
    delivered = yaml.safe_load((directory / "static-pod.yaml").read_bytes())
    with tempfile.TemporaryDirectory() as scratch:
        manifest = Path(scratch) / "static-pod.yaml"
        manifest.write_text(yaml.safe_dump(desired_static_pod(delivered, interval, options)))
        plane.add_static_pod(StaticPod(manifest=manifest, user=USER))
    _wait_ready(plane)


def desired_static_pod(
    delivered: Object, interval: timedelta, options: Sequence[str] = ()
) -> Object:
    """The delivered pod as it runs here."""
    pod = copy.deepcopy(delivered)
    pod["spec"].pop("hostNetwork")
    (container,) = pod["spec"]["containers"]
    container["args"] = [
        f"--interval={interval.total_seconds():.0f}s" if arg.startswith("--interval=") else arg
        for arg in container["args"]
    ]
    container["args"] += options
    return pod


def _wait_ready(plane: ControlPlane) -> None:
    """Return when the pod's mirror says that it is ready."""
    deadline = time.monotonic() + _LIMIT
    wanted = "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}"
    while True:
        where = ("pod", POD, f"--namespace={NAMESPACE}")
        answer = plane.kubectl("get", *where, wanted, check=False)
        if answer.stdout == "True":
            return
        if time.monotonic() > deadline:
            raise NotReady(
                f"the staleness checker was not ready after {_LIMIT:.0f} s; see: "
                f"quarterdeck local kubectl logs --namespace={NAMESPACE} {POD}",
                answer.stderr,
            )
        time.sleep(0.2)
