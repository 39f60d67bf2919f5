"""Starts a supervisor in the background, and stops one, from another process.

Any number of processes may do so for one state directory at the same time. Only one supervisor
gets the lock; all callers wait for that one.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Literal

from quarterdeck.localcluster.access import access_to
from quarterdeck.localcluster.errors import LocalClusterError, NotReady
from quarterdeck.localcluster.installation import install_missing
from quarterdeck.localcluster.order import ClusterOrder, encode
from quarterdeck.localcluster.process import how_it_ended, tail
from quarterdeck.localcluster.real_nodes.leftovers import remove_leftovers
from quarterdeck.localcluster.state import Layout, is_locked, prepare
from quarterdeck.localcluster.status import ClusterStatus, read_status, running_status

START_TIMEOUT = 180.0
REAL_NODES_START_TIMEOUT = 420.0
STOP_TIMEOUT = 60.0
_POLL_PERIOD = 0.05


def bring_up(order: ClusterOrder, progress: Callable[[str], None]) -> ClusterStatus:
    """Start the cluster unless it runs, wait until it is ready, and return its status."""
    layout = Layout(order.state)
    prepare(layout)
    limit = REAL_NODES_START_TIMEOUT if order.real_nodes else START_TIMEOUT
    deadline = time.monotonic() + limit
    child: subprocess.Popen[bytes] | None = None
    try:
        while True:
            status = running_status(layout)
            if status is not None and status.phase in ("ready", "degraded"):
                break
            if status is not None:
                progress(status.step)
            elif child is not None and child.poll() is not None:
                _raise_if_failed(layout, child)
                child = None
            elif child is None and not is_locked(layout):
                child = _spawn(layout, order)
            if time.monotonic() > deadline:
                log = layout.log_of("supervisor")
                raise NotReady(
                    f"the cluster was not ready after {limit:.0f} s; see {log}", tail(log)
                )
            time.sleep(_POLL_PERIOD)
    except BaseException:
        if child is not None and child.poll() is None:  # We started it, and do not wait any more.
            child.terminate()
            child.wait()
        raise
    if not order.real_nodes and (child is None or status.supervisor.pid != child.pid):
        install_missing(access_to(layout, status), order.contents, progress)
    return status


StopResult = Literal["stopped", "did not stop in time: killed", "not running"]


def take_down(layout: Layout, progress: Callable[[str], None]) -> StopResult:
    """Stop the cluster, and return when all its processes have ended."""
    deadline = time.monotonic() + STOP_TIMEOUT
    while (status := running_status(layout)) is None:
        # A supervisor that holds the lock is about to write its status.
        if not is_locked(layout):
            layout.status.unlink(missing_ok=True)
            remove_leftovers(layout)
            return "not running"
        if time.monotonic() > deadline:
            raise LocalClusterError(f"somebody holds {layout.lock}, but does not say who; end that")
        time.sleep(_POLL_PERIOD)
    progress("stopping")
    if status.supervisor.end(signal.SIGTERM, STOP_TIMEOUT):
        return "stopped"
    status.supervisor.end(signal.SIGKILL, STOP_TIMEOUT)
    layout.status.unlink(missing_ok=True)
    remove_leftovers(layout)
    return "did not stop in time: killed"


def purge(layout: Layout) -> None:
    """Remove the state of a cluster that does not run."""
    if not layout.root.exists():
        return
    if not (layout.version.exists() or layout.pki.exists()):
        raise LocalClusterError(
            f"{layout.root} does not look like the state of a local cluster; remove it by hand"
        )
    # The user may have chosen a link to another disk.
    shutil.rmtree(layout.root.resolve())
    layout.root.unlink(missing_ok=True)


def _spawn(layout: Layout, order: ClusterOrder) -> "subprocess.Popen[bytes]":
    with layout.log_of("supervisor").open("ab") as log:
        child = subprocess.Popen(
            # The directory is an argument only so that it shows in the list of processes.
            [sys.executable, "-P", "-m", "quarterdeck.localcluster.supervisor", str(order.state)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd="/",
            env=dict(os.environ),
            start_new_session=True,
        )
    assert child.stdin is not None  # noqa: S101 - asked for above
    with child.stdin:
        child.stdin.write(encode(order))
    return child


def _raise_if_failed(layout: Layout, child: "subprocess.Popen[bytes]") -> None:
    """Raise the error of our supervisor; do nothing if another supervisor has the lock."""
    if child.returncode == 0:
        return
    last = read_status(layout)
    if last is not None and last.supervisor.pid == child.pid and last.error:
        raise LocalClusterError(last.error)
    log = layout.log_of("supervisor")
    raise NotReady(f"the supervisor {how_it_ended(child.returncode)}; see {log}", tail(log))
