"""A cluster that runs, for whoever uses it: kubectl, single requests, credentials of users.

Who runs it is another matter: `ControlPlane` does, and is used in the same way; the command line
reaches a cluster that a supervisor runs.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from quarterdeck.localcluster import simulated
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.localcluster.components import Setup
from quarterdeck.localcluster.credentials import issue_kubeconfig, token_kubeconfig
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.ports import ports_of
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.static_pods import StaticPod, add_static_pod
from quarterdeck.localcluster.status import Status, kubectl_environment


def access_to(layout: Layout, running: Status) -> "ClusterAccess":
    """The cluster that a supervisor runs in this state directory."""
    setup = Setup(layout=layout, ports=ports_of(layout), stages=simulated.STAGES)
    return ClusterAccess(setup, Path(running.kubectl))


class ClusterAccess:
    """The cluster of a state directory, as its administrator."""

    def __init__(self, setup: Setup, kubectl: Path) -> None:
        self.setup = setup
        self.layout = setup.layout
        self._kubectl = kubectl

    @property
    def url(self) -> str:
        """The API server's address."""
        return self.setup.api_url

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.layout.kubeconfig

    def kubectl(
        self,
        *args: str,
        input: str | None = None,  # noqa: A002 - as in subprocess.run
        check: bool = True,
        kubeconfig: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """What the pinned kubectl did; a failed one raises with its error text when checked."""
        result = subprocess.run(
            [self._kubectl, *args],
            input=input,
            text=True,
            capture_output=True,
            env=os.environ | kubectl_environment(self.layout, kubeconfig),
            check=False,
        )
        if check and result.returncode != 0:
            raise LocalClusterError(
                f"kubectl {' '.join(args)} failed ({result.returncode}): {result.stderr.strip()}"
            )
        return result

    def requests(self) -> Requests:
        """Single requests to the API server, as administrator."""
        return Requests(self.setup.ports.kube_apiserver, self.layout.pki, user="admin")

    def kubeconfig_for(self, user: str, groups: Iterable[str] = ()) -> Path:
        """A kubeconfig for a user in these groups, by a client certificate issued now."""
        return issue_kubeconfig(self.setup, user, groups)

    def add_static_pod(self, wanted: StaticPod) -> Path:
        """Have the node `this-machine` run a static pod with a certificate of its own."""
        return add_static_pod(self.setup, wanted)

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a token of a ServiceAccount that is there."""
        token = self.kubectl("create", "token", name, "--namespace", namespace).stdout.strip()
        return token_kubeconfig(self.setup, f"system:serviceaccount:{namespace}:{name}", token)
