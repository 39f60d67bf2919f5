"""The sample operator in a local cluster: deployed from `deploy`, and what it writes."""

import os
import subprocess
from pathlib import Path

from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.definitions import definitions_directory
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.status import kubectl_environment

NAMESPACE = "quarterdeck-sample"
LOG_COMMAND = (
    *("logs", f"--namespace={NAMESPACE}", "--selector=app=sample-operator"),
    *("--prefix", "--tail=4"),
)
"""What shows the last lines of all replicas."""

_MANIFESTS = ("sample/rbac.yaml", "sample/deployment.yaml")
_LIMIT = 90


def deploy_sample(plane: ControlPlane) -> None:
    """Put the sample operator into a cluster, and return when its replicas are ready."""
    directory = definitions_directory().parent
    for manifest in _MANIFESTS:
        file = f"--filename={directory / manifest}"
        plane.kubectl("apply", "--server-side", "--force-conflicts", file)
    deployment = ("deployment/sample-operator", f"--namespace={NAMESPACE}")
    plane.kubectl("rollout", "status", *deployment, f"--timeout={_LIMIT}s")


def sample_log(layout: Layout, kubectl: Path) -> str:
    """The last lines of the sample operator's replicas; empty when there are none."""
    return subprocess.run(
        [kubectl, *LOG_COMMAND],
        env=os.environ | kubectl_environment(layout),
        capture_output=True,
        text=True,
        check=False,
    ).stdout
