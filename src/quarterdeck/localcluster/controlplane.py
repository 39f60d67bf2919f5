"""One control plane: etcd, API server, controller manager, scheduler and the simulated node.

It starts, stops and disturbs child processes and knows when each is ready. It does not restart
what crashed (the supervisor does), and it is synchronous: from asyncio, call it in a thread.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from quarterdeck.localcluster import certificates, kubeconfig, simulated
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.localcluster.components import COMPONENTS, Component, Setup, arguments
from quarterdeck.localcluster.errors import ComponentCrashed, LocalClusterError, NotReady
from quarterdeck.localcluster.ports import check_ports, ports_of
from quarterdeck.localcluster.process import Process, Spawner
from quarterdeck.localcluster.state import Layout, prepare, write_private

START_LIMIT = 60.0
"""Seconds until a component that is not ready counts as failed; ready takes two on an idle
machine, and many times that when every core is taken by other tests."""

STOP_GRACE = 10.0
_POLL = 0.02

Progress = Callable[[str], None]


class Programs(Protocol):
    """Where the programs are; `quarterdeck.localcluster.binaries.Binaries` is one."""

    @property
    def etcd(self) -> Path:
        """The program of that name, as are all below."""

    @property
    def kube_apiserver(self) -> Path:
        """The API server."""

    @property
    def kube_controller_manager(self) -> Path:
        """The controller manager."""

    @property
    def kube_scheduler(self) -> Path:
        """The scheduler."""

    @property
    def kwok(self) -> Path:
        """The player of the simulated node."""

    @property
    def kubectl(self) -> Path:
        """The command line client of the same version."""


def _silent(step: str) -> None:
    """Show nothing."""


class ControlPlane:
    """A Kubernetes control plane in a state directory of its own.

    Methods that take components act on all when none is named. `start` returns when what it has
    started is ready.
    """

    def __init__(
        self,
        state: Path,
        programs: Programs,
        *,
        durable: bool = True,
        audit: bool = False,
        api_port: int | None = None,
        progress: Progress = _silent,
    ) -> None:
        self.layout = Layout(state.resolve())
        self._programs = programs
        self._progress = progress
        prepare(self.layout)
        self.setup = Setup(
            layout=self.layout,
            ports=ports_of(self.layout, api_port=api_port),
            stages=simulated.STAGES,
            durable=durable,
            audit=audit,
        )
        self._write_credentials()
        self._spawner = Spawner()
        self.processes = {component: self._process(component) for component in COMPONENTS}

    # What others need to use it.

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
            [self._programs.kubectl, *args],
            input=input,
            text=True,
            capture_output=True,
            env=self.kubectl_environment(kubeconfig),
            check=False,
        )
        if check and result.returncode != 0:
            raise LocalClusterError(
                f"kubectl {' '.join(args)} failed ({result.returncode}): {result.stderr.strip()}"
            )
        return result

    def kubectl_environment(self, kubeconfig: Path | None = None) -> dict[str, str]:
        """The environment in which kubectl speaks to this cluster."""
        return os.environ | {
            "KUBECONFIG": str(kubeconfig or self.kubeconfig),
            "KUBECACHEDIR": str(self.layout.kubectl_cache),
        }

    def requests(self) -> Requests:
        """Single requests to the API server, as administrator."""
        return Requests(self.setup.ports.kube_apiserver, self.layout.pki, user="admin")

    def kubeconfig_for(self, user: str, groups: Iterable[str] = ()) -> Path:
        """A kubeconfig for a user in these groups, by a client certificate issued now."""
        plan = certificates.Plan(
            name=user, common_name=user, organizations=tuple(groups), client=True
        )
        authority = certificates.load(self.layout.pki, "ca")
        pair = certificates.issue(plan, authority, datetime.now(UTC))
        text = kubeconfig.with_certificate(self.url, authority.certificate, pair, user=user)
        return self._write_kubeconfig(user, text)

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a token of a ServiceAccount that is there."""
        token = self.kubectl("create", "token", name, "--namespace", namespace).stdout.strip()
        user = f"system:serviceaccount:{namespace}:{name}"
        authority = certificates.load(self.layout.pki, "ca").certificate
        return self._write_kubeconfig(
            user, kubeconfig.with_token(self.url, authority, token, user=user)
        )

    # Running it.

    def start(self, *components: Component) -> None:
        """Start components that do not run, and return when they are ready."""
        if components:
            for component in components:
                self._prepare_start(component)
                self.processes[component].start()
            self.wait_ready(*components)
            return
        check_ports(self.setup.ports)
        self._progress("starting etcd and the API server")
        self.processes["etcd"].start()
        self.processes["kube-apiserver"].start()
        self.wait_ready("etcd", "kube-apiserver")
        self._progress("starting the controller manager, the scheduler and the simulated node")
        rest: tuple[Component, ...] = ("kube-controller-manager", "kube-scheduler", "kwok")
        self.start(*rest)

    def stop(self, *components: Component, grace: float = STOP_GRACE) -> None:
        """Stop components in good order, each with that many seconds before it is killed."""
        for component in reversed(COMPONENTS):
            if component in (components or COMPONENTS):
                self.processes[component].stop(grace)

    def restart(self, *components: Component) -> None:
        """Stop components and start them again."""
        self.stop(*components)
        self.start(*components)

    def kill(self, *components: Component) -> None:
        """Kill components with SIGKILL."""
        for component in components or COMPONENTS:
            self.processes[component].kill()

    def pause(self, *components: Component) -> None:
        """Stop components from doing anything, with their connections open (SIGSTOP)."""
        for component in components or COMPONENTS:
            self.processes[component].pause()

    def resume(self, *components: Component) -> None:
        """Let paused components go on (SIGCONT)."""
        for component in components or COMPONENTS:
            self.processes[component].resume()

    def wait_ready(self, *components: Component, limit: float = START_LIMIT) -> None:
        """Return when components are ready; raise when one has crashed or takes too long."""
        waiting = list(components or COMPONENTS)
        deadline = time.monotonic() + limit
        while waiting := [one for one in waiting if not self.is_ready(one)]:
            for component in waiting:
                self._raise_if_crashed(component)
            if time.monotonic() > deadline:
                slow = self.processes[waiting[0]]
                raise NotReady(
                    f"{slow.name} was not ready after {limit:.0f} s; its log: {slow.log}",
                    slow.last_lines(),
                )
            time.sleep(_POLL)

    def is_ready(self, component: Component) -> bool:
        """Whether a component runs and says that it is ready."""
        if self.processes[component].pid is None:
            return False
        ports, pki = self.setup.ports, self.layout.pki
        match component:
            case "etcd":
                etcd = Requests(ports.etcd_client, pki, user="etcd-client", authority="etcd-ca")
                return etcd.ready("/readyz")
            case "kube-apiserver":
                return self.requests().ready("/readyz")
            case "kube-controller-manager":
                manager = Requests(ports.kube_controller_manager, pki, user="admin")
                return manager.ready("/healthz")
            case "kube-scheduler":
                return Requests(ports.kube_scheduler, pki, user="admin").ready("/readyz")
            case "kwok":
                return self.requests().ready(simulated.LEASE_PATH)

    def close(self) -> None:
        """Kill whatever still runs, and let go of it all."""
        self.kill()
        self._spawner.close()

    def __enter__(self) -> Self:
        """Start it all."""
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill it all: who leaves a `with` wants the cluster no more."""
        self.close()

    def _process(self, component: Component) -> Process:
        program = getattr(self._programs, component.replace("-", "_"))
        return Process(
            component,
            [str(program), *arguments(component, self.setup)],
            spawner=self._spawner,
            environment={"HOME": str(self.layout.root), "PATH": os.defpath},
            log=self.layout.log_of(component),
        )

    def _prepare_start(self, component: Component) -> None:
        """What has to be in the cluster before a component starts: so far, only kwok needs any."""
        if component != "kwok":
            return
        requests = self.requests()
        for manifest in simulated.desired_manifests():
            requests.apply(manifest.collection, manifest.body)
        # The Lease of an earlier kwok: the next one would wait until it has run out.
        requests.send("DELETE", simulated.LEASE_PATH)

    def _raise_if_crashed(self, component: Component) -> None:
        process = self.processes[component]
        if process.exit_code is not None:
            raise ComponentCrashed(
                f"{component} ended with exit code {process.exit_code} before it was ready; "
                f"its log: {process.log}",
                process.last_lines(),
            )

    def _write_credentials(self) -> None:
        pki = self.layout.pki
        certificates.make_certificates(pki)
        authority = certificates.load(pki, "ca").certificate
        for user in ("kube-controller-manager", "kube-scheduler", "kwok", "admin"):
            text = kubeconfig.with_certificate(
                self.url, authority, certificates.load(pki, user), user=user
            )
            target = self.kubeconfig if user == "admin" else self.layout.kubeconfig_of(user)
            write_private(target, text)
        if self.setup.audit:
            write_private(self.layout.audit_policy, AUDIT_POLICY)

    def _write_kubeconfig(self, user: str, text: bytes) -> Path:
        path = self.layout.kubeconfig_of(user)
        write_private(path, text)
        return path


AUDIT_POLICY = b"""\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
"""
