"""One control plane: etcd, API server, controller manager, scheduler and the simulated node.

It starts, stops, kills and pauses child processes and checks when each is ready. It does not
restart crashed components (the supervisor does). It is synchronous: from asyncio, call it in a
thread.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from quarterdeck.localcluster import simulated
from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.api_request import Requests
from quarterdeck.localcluster.binaries import Binaries
from quarterdeck.localcluster.components import (
    AGENT_ALLOCATOR,
    COMPONENTS,
    GO_SETTINGS,
    THIS_MACHINE,
    Component,
    Setup,
    arguments,
)
from quarterdeck.localcluster.credentials import write_credentials
from quarterdeck.localcluster.errors import ComponentCrashed, NotReady
from quarterdeck.localcluster.node import placement
from quarterdeck.localcluster.parts import ExtraComponent
from quarterdeck.localcluster.ports import check_ports, ports_of, stored_operator_ports
from quarterdeck.localcluster.process import ComponentProcess, Spawner, how_it_ended
from quarterdeck.localcluster.state import (
    Layout,
    Lock,
    check_space,
    discard_unready_data,
    keep_data,
    prepare,
)

START_TIMEOUT = 60.0
"""Seconds after which a component that is not ready counts as failed. An idle machine needs two;
one whose cores all run other tests needs many times that."""

STOP_GRACE_PERIOD = 10.0
_POLL_PERIOD = 0.1
_DEFAULT_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


def _silent(step: str) -> None:
    """Ignore the progress."""


class ControlPlane(ClusterAccess):
    """A Kubernetes control plane in a state directory, which it locks until it is closed.

    Methods that take components act on all components if none is named. `start` returns when the
    components are ready.
    """

    def __init__(
        self,
        state: Path,
        binaries: Binaries,
        *,
        durable: bool = True,
        audit: bool = False,
        node_lease: int = 40,
        api_port: int | None = None,
        real_nodes: int = 0,
        progress: Callable[[str], None] = _silent,
    ) -> None:
        layout = Layout(state.resolve())
        self.binaries = binaries
        self._progress = progress
        prepare(layout)
        self._lock = Lock(layout)
        try:
            setup = Setup(
                layout=layout,
                ports=ports_of(layout, api_port=api_port),
                stages=simulated.STAGES,
                durable=durable,
                audit=audit,
                node_lease=node_lease,
                real_nodes=real_nodes,
            )
            super().__init__(setup, binaries.kubectl)
            write_credentials(setup)
        except BaseException:
            self._lock.release()
            raise
        self._spawner = Spawner()
        self._parts: dict[str, ExtraComponent] = {}
        self.processes: dict[str, ComponentProcess] = {
            component: self._process(component) for component in COMPONENTS
        }

    def add_this_machine(self, options: Sequence[str] = ()) -> None:
        """Add the node `this-machine`; its agent gets these options beside its own.

        After `start`, start it by name.
        """
        self.processes[THIS_MACHINE] = self._process(THIS_MACHINE, options)

    def add(self, part: ExtraComponent) -> None:
        """Add a part beside the control plane; start it by name, after `start`."""
        self._parts[part.name] = part
        self.processes[part.name] = ComponentProcess(
            part.name,
            part.command,
            spawner=self._spawner,
            environment=part.environment,
            log=self.layout.log_of(part.name),
            descriptors=part.descriptors,
        )

    @property
    def components(self) -> tuple[str, ...]:
        """All components of this cluster, each after those that it depends on."""
        return tuple(self.processes)

    @property
    def audit_log(self) -> Path:
        """The audit log, a JSON object per request, if auditing is on."""
        return self.layout.audit_log

    # Start and stop.

    def start(self, *components: str) -> None:
        """Start the components that do not run, and return when they are ready."""
        if components:
            for component in components:
                self.launch(component)
            self.wait_ready(*components)
            return
        check_ports(self.setup.ports.by_component() | stored_operator_ports(self.layout))
        self._progress("starting etcd and the API server")
        # Both start at the same time, as each takes a second. An API server ends if it waits 20 s
        # for etcd; on a slow disk it is started again then.
        self.launch("etcd")
        self.launch("kube-apiserver")
        self.wait_ready("etcd")
        self.start("kube-apiserver")
        self._progress("starting the controller manager, the scheduler and the simulated node")
        self.start("kube-controller-manager", "kube-scheduler", "kwok")
        if THIS_MACHINE in self.processes:
            self._progress("starting the node this-machine")
            self.start(THIS_MACHINE)

    def launch(self, component: str) -> None:
        """Start a component that does not run, and do not wait for it."""
        if component == "etcd" and self.processes[component].pid is None:
            discard_unready_data(self.layout)
        if component == "kwok":
            simulated.prepare_node(
                self.requests(),
                self.setup.ports.this_machine,
                beside_real_nodes=bool(self.setup.real_nodes),
            )
        if component == THIS_MACHINE:
            placement.prepare_node(self.requests())
        if component in self._parts and self.processes[component].pid is None:
            self._parts[component].prepare()
        self.processes[component].start()

    def stop(self, *components: str, grace: float = STOP_GRACE_PERIOD) -> None:
        """Stop components, dependants first; `grace` seconds after SIGTERM each is killed."""
        for component in reversed(self.components):
            if component in (components or self.components):
                self.processes[component].stop(grace)

    def restart(self, *components: str) -> None:
        """Stop components and start them again."""
        self.stop(*components)
        self.start(*components)

    def kill(self, *components: str) -> None:
        """Kill components with SIGKILL."""
        for component in components or self.components:
            self.processes[component].kill()

    def pause(self, *components: str) -> None:
        """Pause components by SIGSTOP; their connections stay open."""
        for component in components or self.components:
            self.processes[component].pause()

    def resume(self, *components: str) -> None:
        """Resume paused components by SIGCONT."""
        for component in components or self.components:
            self.processes[component].resume()

    def wait_ready(self, *components: str, limit: float = START_TIMEOUT) -> None:
        """Wait until components are ready; raise if one has crashed or takes too long."""
        waiting = list(components or self.components)
        deadline = time.monotonic() + limit
        while waiting := [one for one in waiting if not self.is_ready(one)]:
            for component in waiting:
                self._raise_if_crashed(component)
            if time.monotonic() > deadline:
                slow = self.processes[waiting[0]]
                raise NotReady(
                    f"{slow.name} was not ready after {limit:.0f} s; its log is {slow.log}",
                    slow.last_lines(),
                )
            time.sleep(_POLL_PERIOD)
        if "etcd" in (components or self.components):
            keep_data(self.layout)

    def is_ready(self, component: str) -> bool:
        """Whether a component runs and answers that it is ready."""
        if self.processes[component].pid is None:
            return False
        if component in self._parts:
            return self._parts[component].is_ready()
        ports, pki = self.setup.ports, self.layout.pki
        match component:
            case "etcd":
                return self.etcd_requests().ready("/readyz")
            case "kube-apiserver":
                return self.requests().ready("/readyz")
            case "kube-controller-manager":
                manager = Requests(ports.kube_controller_manager, pki, user="admin")
                # It answers "ok" before it runs any controller, and crashes if the API server is
                # lost before that. The server admits pods when this account exists.
                return manager.ready(
                    "/healthz?verbose", says=b"garbage-collector-controller ok"
                ) and self.requests().ready(_DEFAULT_ACCOUNT)
            case "kube-scheduler":
                return Requests(ports.kube_scheduler, pki, user="admin").ready("/readyz")
            case "kwok":
                return simulated.is_ready(self.requests())
            case "this-machine":
                return placement.is_ready(self.requests())
        return False

    def close(self) -> None:
        """Kill all running components, and unlock the state directory."""
        self.kill()
        self._spawner.close()
        self._lock.release()

    def __enter__(self) -> Self:
        """Start all components."""
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
        """Kill all components."""
        self.close()

    def _process(self, component: Component, options: Sequence[str] = ()) -> ComponentProcess:
        program = self.binaries.paths.get(component, Path(sys.executable))
        environment = {"HOME": str(self.layout.root), "PATH": os.defpath}
        environment |= {name: os.environ[name] for name in GO_SETTINGS if name in os.environ}
        if component == THIS_MACHINE:
            # The agent needs these to find bubblewrap, and to hide the user's kubeconfigs and
            # clusters from pods.
            inherited = ("PATH", "HOME", "KUBECONFIG", "XDG_STATE_HOME")
            environment = {n: os.environ[n] for n in inherited if n in os.environ} | AGENT_ALLOCATOR
        return ComponentProcess(
            component,
            [str(program), *arguments(component, self.setup), *options],
            spawner=self._spawner,
            environment=environment,
            log=self.layout.log_of(component),
            # A container that starts while the agent is killed would stay.
            with_descendants=component == THIS_MACHINE,
        )

    def _raise_if_crashed(self, component: str) -> None:
        process = self.processes[component]
        if process.exit_code is not None:
            check_space(self.layout.root)
            raise ComponentCrashed(
                f"{component} {how_it_ended(process.exit_code)} before it was ready; "
                f"its log is {process.log}",
                process.last_lines(),
            )
