"""The status that a supervisor writes, and whether that supervisor still runs.

The command line reads it. A status whose supervisor has ended is void. A process id alone does not
show that, because another process may have it by now.
"""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

import msgspec

from quarterdeck.localcluster.state import Layout
from quarterdeck.private_file import write_private

Phase = Literal["starting", "ready", "degraded", "stopping", "failed"]
ComponentState = Literal["waiting", "starting", "running", "crashed"]


class ProcessIdentity(msgspec.Struct, frozen=True):
    """One process, distinct from a later one with the same id."""

    pid: int
    started: int
    """In clock ticks since the machine was booted."""
    boot: str

    @classmethod
    def of(cls, pid: int, proc: Path = Path("/proc")) -> Self | None:
        """The process with this id now; None if there is none."""
        try:
            stat = (proc / str(pid) / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The program's name is in parentheses and may itself contain parentheses.
        fields = stat.rpartition(")")[2].split()
        if fields[0] in "ZX":  # It has ended, and its parent has not waited for it yet.
            return None
        return cls(pid, int(fields[19]), (proc / "sys/kernel/random/boot_id").read_text().strip())

    @property
    def is_alive(self) -> bool:
        """Whether this process still runs."""
        return ProcessIdentity.of(self.pid) == self

    @contextmanager
    def pinned(self) -> Iterator[int | None]:
        """A pidfd of the process, which a later process cannot inherit; None if it has ended."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield descriptor if self.is_alive else None
        finally:
            os.close(descriptor)

    def end(self, number: signal.Signals, limit: float) -> bool:
        """Send a signal; True if the process ends within `limit` seconds."""
        with self.pinned() as descriptor:
            if descriptor is None:
                return True
            signal.pidfd_send_signal(descriptor, number)
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            return bool(poll.poll(limit * 1000))


class ComponentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one component."""

    name: str
    state: ComponentState
    pid: int | None = None
    restarts: int = 0
    log: str


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a cluster and its components."""

    phase: Phase
    supervisor: ProcessIdentity
    step: str = ""
    """The current step while the cluster starts or stops."""
    error: str = ""
    """Why the cluster could not start, in one line."""
    since: float
    """When the supervisor was started, in seconds since 1970."""
    url: str = ""
    kubeconfig: str = ""
    kubectl: str = ""
    foreground: bool = False
    registry: str = ""
    """The registry beside real nodes, as this machine reaches it."""
    audit_log: str = ""
    """The API server's audit log; empty if it writes none."""
    components: tuple[ComponentStatus, ...] = ()


def write_status(layout: Layout, status: ClusterStatus) -> None:
    """Replace the status."""
    write_private(layout.status, msgspec.json.encode(status))


def read_status(layout: Layout) -> ClusterStatus | None:
    """The last status, whether its supervisor runs or not; None if there is none."""
    try:
        return msgspec.json.decode(layout.status.read_bytes(), type=ClusterStatus)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


def running_status(layout: Layout) -> ClusterStatus | None:
    """The status of the running supervisor; None if none runs."""
    status = read_status(layout)
    return status if status is not None and status.supervisor.is_alive else None


def kubectl_environment(layout: Layout, kubeconfig: Path | None = None) -> dict[str, str]:
    """The environment variables with which kubectl uses this cluster."""
    return {
        "KUBECONFIG": str(kubeconfig or layout.kubeconfig),
        "KUBECACHEDIR": str(layout.kubectl_cache),
    }
