"""Access to a running cluster: kubectl, single requests, credentials of users.

`ControlPlane` inherits it for its own cluster. The command line uses it for a cluster that a
supervisor runs.
"""

import json
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
from quarterdeck.localcluster.static_pods import StaticPodRequest, add_static_pod
from quarterdeck.localcluster.status import ClusterStatus, kubectl_environment

_TOKEN_REQUEST = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}


def access_to(layout: Layout, running: ClusterStatus) -> "ClusterAccess":
    """Access to the cluster that a supervisor runs in this state directory."""
    setup = Setup(layout=layout, ports=ports_of(layout), stages=simulated.STAGES)
    return ClusterAccess(setup, Path(running.kubectl))


class ClusterAccess:
    """Administrator access to the cluster of a state directory."""

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
        """Run the pinned kubectl; with `check`, a failure raises its error text."""
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

    def etcd_requests(self) -> Requests:
        """Single requests to etcd, which speaks JSON too."""
        ports, pki = self.setup.ports, self.layout.pki
        return Requests(ports.etcd_client, pki, user="etcd-client", authority="etcd-ca")

    def kubeconfig_for(self, user: str, groups: Iterable[str] = ()) -> Path:
        """Write a kubeconfig with a new client certificate for a user in these groups."""
        return issue_kubeconfig(self.setup, user, groups)

    def add_static_pod(self, wanted: StaticPodRequest) -> Path:
        """Let the node `this-machine` run a static pod with its own client certificate."""
        return add_static_pod(self.setup, wanted)

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """Write a kubeconfig with a token of an existing ServiceAccount."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = self.requests().send("POST", path, json.dumps(_TOKEN_REQUEST).encode())
        if not answer.ok:
            raise LocalClusterError(f"no token of {namespace}/{name}: HTTP {answer.status}")
        token = answer.json()["status"]["token"]
        return token_kubeconfig(self.setup, f"system:serviceaccount:{namespace}:{name}", token)
