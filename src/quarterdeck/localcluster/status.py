"""What a supervisor says about its cluster, and whether that supervisor still lives.

The supervisor writes; the command line reads. A status whose supervisor is gone means nothing
any more, and a process id alone does not tell: it may belong to another process by now.
"""

import os
import select
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

import msgspec

from quarterdeck.localcluster.state import Layout, write_private

Phase = Literal["starting", "ready", "degraded", "stopping", "failed"]
ComponentState = Literal["waiting", "starting", "running", "crashed"]


class Identity(msgspec.Struct, frozen=True):
    """One process, never to be mistaken for a later one with the same id."""

    pid: int
    started: int
    """In clock ticks since the machine was booted."""
    boot: str

    @classmethod
    def of(cls, pid: int, proc: Path = Path("/proc")) -> Self | None:
        """The process that has this id now; None when there is none."""
        try:
            stat = (proc / str(pid) / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        # The program's name is in parentheses and may hold anything, parentheses too.
        fields = stat.rpartition(")")[2].split()
        if fields[0] in "ZX":  # it has ended, and waits to be noticed
            return None
        return cls(pid, int(fields[19]), (proc / "sys/kernel/random/boot_id").read_text().strip())

    @property
    def is_alive(self) -> bool:
        """Whether that very process still runs."""
        return Identity.of(self.pid) == self

    @contextmanager
    def pinned(self) -> Iterator[int | None]:
        """A descriptor of the process, which no later one can take over; None when it has ended."""
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
        """Send a signal, and say whether the process has ended within `limit` seconds."""
        with self.pinned() as descriptor:
            if descriptor is None:
                return True
            signal.pidfd_send_signal(descriptor, number)
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            return bool(poll.poll(limit * 1000))


class ComponentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What one component does."""

    name: str
    state: ComponentState
    pid: int | None = None
    restarts: int = 0
    log: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster does."""

    phase: Phase
    supervisor: Identity
    step: str = ""
    """What is being done, while it starts or stops."""
    error: str = ""
    """Why it could not start, in one line."""
    since: float
    """When the supervisor was started, in seconds since 1970."""
    url: str = ""
    kubeconfig: str = ""
    kubectl: str = ""
    foreground: bool = False
    components: tuple[ComponentStatus, ...] = ()


def write_status(layout: Layout, status: Status) -> None:
    """Replace what was said before."""
    write_private(layout.status, msgspec.json.encode(status))


def read_status(layout: Layout) -> Status | None:
    """What was last said, whether its supervisor lives or not; None when nothing was."""
    try:
        return msgspec.json.decode(layout.status.read_bytes(), type=Status)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


def running_status(layout: Layout) -> Status | None:
    """What the supervisor that lives now says; None when none lives."""
    status = read_status(layout)
    return status if status is not None and status.supervisor.is_alive else None


def kubectl_environment(layout: Layout, kubeconfig: Path | None = None) -> dict[str, str]:
    """What kubectl needs in its environment to speak to this cluster."""
    return {
        "KUBECONFIG": str(kubeconfig or layout.kubeconfig),
        "KUBECACHEDIR": str(layout.kubectl_cache),
    }
