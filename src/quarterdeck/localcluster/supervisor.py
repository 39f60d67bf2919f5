"""The process that keeps one cluster running until a signal stops it.

It starts the control plane, installs the contents, restarts crashed components, and writes the
status for `quarterdeck local status`. SIGTERM and SIGINT stop all components in order; a second
signal kills them. `quarterdeck local up` runs it in the background as
`python -m quarterdeck.localcluster.supervisor`, with the order on standard input.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from quarterdeck.localcluster.controlplane import ControlPlane
from quarterdeck.localcluster.crashes import CrashHistory, crashed, started
from quarterdeck.localcluster.errors import AlreadyRunning, LocalClusterError
from quarterdeck.localcluster.installation import install
from quarterdeck.localcluster.order import ClusterOrder, decode
from quarterdeck.localcluster.process import how_it_ended
from quarterdeck.localcluster.state import Layout
from quarterdeck.localcluster.static_pods import use_static_pods
from quarterdeck.localcluster.status import (
    ClusterStatus,
    ComponentState,
    ComponentStatus,
    Phase,
    ProcessIdentity,
    write_status,
)

if TYPE_CHECKING:
    from quarterdeck.localcluster.real_nodes.cluster import RealNodes

CHECK_PERIOD = 0.2
EXIT_CANNOT = 2
"""The exit code if the cluster cannot run on this machine."""

Report = Callable[[str], None]


class _Stop(BaseException):
    """A signal asks the cluster to stop."""


class _StopNow(BaseException):
    """A second signal asks the cluster to stop without a grace period."""


class Supervisor:
    """Runs one cluster; `report` gets a line for each crash and restart."""

    def __init__(
        self,
        order: ClusterOrder,
        *,
        report: Report,
        progress: Report,
        ready: Callable[[ClusterStatus], None],
    ) -> None:
        self._report = report
        self._show = progress
        self._ready = ready
        self._order = order
        self._since = time.time()
        identity = ProcessIdentity.of(os.getpid())
        assert identity is not None  # noqa: S101 - we are alive
        self._identity = identity
        self._phase: Phase = "starting"
        self._step = "starting"
        self._error = ""
        self._written: ClusterStatus | None = None
        self._stopping = False
        self._ignores_signals = False
        self._control_plane = ControlPlane(
            order.state,
            order.binaries,
            audit=order.audit,
            api_port=order.api_port,
            real_nodes=order.real_nodes,
            progress=self._progress,
        )
        self._real_nodes = self._with_real_nodes() if order.real_nodes else None
        if self._real_nodes is None:
            own = self._control_plane.layout.own_manifests
            self._control_plane.add_this_machine([f"--manifests={own}"])
        components = self._control_plane.components
        self._states: dict[str, ComponentState] = dict.fromkeys(components, "waiting")
        self._histories = dict.fromkeys(components, CrashHistory())

    def _with_real_nodes(self) -> "RealNodes":
        # Imported here because most clusters have none.
        from quarterdeck.localcluster.real_nodes.cluster import RealNodes

        try:
            return RealNodes(self._control_plane, self._order.real_nodes, self._progress)
        except BaseException:
            self._control_plane.close()
            raise

    @property
    def layout(self) -> Layout:
        """The paths of this cluster."""
        return self._control_plane.layout

    def run(self) -> None:
        """Start the cluster, keep it running, and return when a signal has stopped it."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            with contextlib.suppress(_Stop):
                self._write()
                self._start()
                self._watch()
            self._phase = "stopping"
            self._progress("stopping")
            self._control_plane.stop()
        except _StopNow:
            self._report("killing what still runs")
        except LocalClusterError as error:
            self._phase, self._error = "failed", str(error)
            raise
        finally:
            self._ignores_signals = True
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            self._end()

    def _end(self) -> None:
        self._control_plane.kill()
        with contextlib.suppress(OSError):  # The disk may be full, or the directory removed.
            if self._phase == "failed":
                self._write()
            else:
                self.layout.status.unlink(missing_ok=True)
        if self._real_nodes is not None:
            self._real_nodes.close()
        self._control_plane.close()

    def _start(self) -> None:
        use_static_pods(self.layout, self._order.contents.static_pods)
        self._control_plane.start()
        if self._real_nodes is not None:
            self._real_nodes.start()
        else:
            install(self._control_plane, self._order.contents, self._progress)
        self._states = dict.fromkeys(self._states, "running")
        self._phase, self._step = "ready", ""
        self._ready(self._write())

    def _watch(self) -> None:
        while True:
            now = time.monotonic()
            for component in self._states:
                self._look_at(component, now)
            all_run = set(self._states.values()) == {"running"}
            self._phase = "ready" if all_run else "degraded"
            with contextlib.suppress(OSError):  # The disk may be full: it is written later.
                self._write()
            time.sleep(CHECK_PERIOD)

    def _look_at(self, component: str, now: float) -> None:
        """Update the state of one component: crashed, starting, running."""
        process = self._control_plane.processes[component]
        history = self._histories[component]
        match self._states[component]:
            case "crashed":
                if history.due_at is not None and now >= history.due_at:
                    self._start_again(component, now)
            case "starting" if self._control_plane.is_ready(component):
                self._states[component] = "running"
                self._report(f"{component} runs again")
            case _ if process.pid is None:
                self._note_crash(component, now, how_it_ended(process.exit_code))

    def _start_again(self, component: str, now: float) -> None:
        try:
            self._control_plane.launch(component)
        except (LocalClusterError, OSError) as error:  # A component that it needs does not run.
            self._note_crash(component, now, f"cannot start: {error}")
        else:
            self._states[component] = "starting"
            self._histories[component] = started(self._histories[component], now)

    def _note_crash(self, component: str, now: float, what: str) -> None:
        history = crashed(self._histories[component], now)
        self._histories[component] = history
        self._states[component] = "crashed"
        wait = (history.due_at or now) - now
        log = self.layout.log_of(component)
        self._report(f"{component} {what}; starting it again in {wait:.1f} s (its log: {log})")

    def _progress(self, step: str) -> None:
        self._step = step
        self._show(step)
        self._write()

    def _write(self) -> ClusterStatus:
        status = self._status()
        if status != self._written:
            write_status(self.layout, status)
            self._written = status
        return status

    def _status(self) -> ClusterStatus:
        plane = self._control_plane
        return ClusterStatus(
            phase=self._phase,
            supervisor=self._identity,
            step=self._step,
            error=self._error,
            since=self._since,
            url=plane.url,
            kubeconfig=str(plane.kubeconfig),
            kubectl=str(plane.binaries.kubectl),
            foreground=self._order.foreground,
            registry=self._real_nodes.registry if self._real_nodes is not None else "",
            audit_log=str(plane.audit_log) if self._order.audit else "",
            components=tuple(
                ComponentStatus(
                    name=component,
                    state=self._states[component],
                    pid=plane.processes[component].pid,
                    restarts=self._histories[component].restarts,
                    log=str(self.layout.log_of(component)),
                )
                for component in plane.components
            ),
        )

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._ignores_signals:  # It ends already; another exception would interrupt that.
            return
        if self._stopping:
            raise _StopNow
        self._stopping = True
        raise _Stop


def main() -> int:
    """Run the supervisor in the background, with its log on standard error."""
    from quarterdeck.log import configure, get_logger

    configure()
    log = get_logger("local.supervisor")
    order = decode(sys.stdin.buffer.read())
    try:
        supervisor = Supervisor(
            order,
            report=lambda line: log.warning("component", said=line),
            progress=lambda step: log.info("step", doing=step),
            ready=lambda status: log.info("ready", url=status.url),
        )
        supervisor.run()
    except AlreadyRunning:
        return 0
    except LocalClusterError as error:
        log.error("cannot run", error=str(error))
        return EXIT_CANNOT
    return 0


if __name__ == "__main__":
    sys.exit(main())
