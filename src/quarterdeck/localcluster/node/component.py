"""The agent as a part of a local cluster: its credentials, its command line, its process."""

import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from quarterdeck.localcluster import certificates
from quarterdeck.localcluster.controlplane import START_LIMIT, ControlPlane
from quarterdeck.localcluster.errors import ComponentCrashed, NotReady
from quarterdeck.localcluster.node import placement
from quarterdeck.localcluster.node.settings import THIS_MACHINE
from quarterdeck.localcluster.process import Process, Spawner
from quarterdeck.localcluster.state import write_private

USER = f"system:node:{THIS_MACHINE}"
GROUP = "system:nodes"
LOG_READER = "system:quarterdeck:kubelet-client"
"""Who the API server is when it asks for logs."""

INHERITED = ("PATH", "HOME", "KUBECONFIG")
_POLL = 0.02


class NodeAgent:
    """Runs the node `this-machine` of a control plane that runs."""

    def __init__(self, plane: ControlPlane, *, options: Sequence[str] = ()) -> None:
        """Run it with these options of `python -m quarterdeck.localcluster.node` as well."""
        self.plane = plane
        self._spawner = Spawner()
        self.process = Process(
            THIS_MACHINE,
            [sys.executable, "-m", "quarterdeck.localcluster.node", *self._arguments(), *options],
            spawner=self._spawner,
            # To find bubblewrap, and to hide the user's kubeconfigs from pods.
            environment={name: os.environ[name] for name in INHERITED if name in os.environ},
            log=plane.layout.log_of(THIS_MACHINE),
        )

    def start(self, limit: float = START_LIMIT) -> None:
        """Start it, and return when the node is ready and pods are placed on it."""
        self._write_certificate()
        placement.prepare_node(self.plane.requests())
        self.process.start()
        deadline = time.monotonic() + limit
        while not placement.is_ready(self.plane.requests()):
            if self.process.exit_code is not None:
                raise ComponentCrashed(
                    f"the agent of {THIS_MACHINE} ended with exit code {self.process.exit_code}; "
                    f"its log is {self.process.log}",
                    self.process.last_lines(),
                )
            if time.monotonic() > deadline:
                raise NotReady(
                    f"{THIS_MACHINE} was not ready after {limit:.0f} s; its log is "
                    f"{self.process.log}",
                    self.process.last_lines(),
                )
            time.sleep(_POLL)

    def close(self) -> None:
        """Kill it; its pods' processes go with it."""
        self.process.kill()
        self._spawner.close()

    def _arguments(self) -> list[str]:
        layout = self.plane.layout
        return [
            f"--kubeconfig={self.plane.kubeconfig_for(USER, [GROUP])}",
            f"--name={THIS_MACHINE}",
            f"--pods={layout.root / 'pods'}",
            f"--mask={layout.root}",
            f"--tls-certificate={certificates.certificate_path(layout.pki, THIS_MACHINE)}",
            f"--tls-key={certificates.key_path(layout.pki, THIS_MACHINE)}",
            f"--client-authority={certificates.certificate_path(layout.pki, 'ca')}",
            f"--client-name={LOG_READER}",
        ]

    def _write_certificate(self) -> None:
        """The certificate by which the API server knows that it reads logs from us."""
        pki = self.plane.layout.pki
        plan = certificates.Plan(
            name=THIS_MACHINE, common_name=USER, server=True, hosts=certificates.LOCAL_HOSTS
        )
        pair = certificates.issue(plan, certificates.load(pki, "ca"), datetime.now(UTC))
        write_private(certificates.key_path(pki, plan.name), pair.key)
        write_private(certificates.certificate_path(pki, plan.name), pair.certificate)
