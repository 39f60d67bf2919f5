"""The cgroups of real nodes: made before a kubelet starts, removed when its node has ended.

A node's cgroup has the same name in every hierarchy that is mounted. The kubelet and runc make the
cgroups of pods below it; a killed node leaves them, empty.
"""

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from quarterdeck.localcluster.errors import LocalClusterError

MOUNTS = Path("/proc/self/mountinfo")
REMOVE_TIMEOUT = 20.0
_POLL_PERIOD = 0.05
_CPUSET = ("cpuset.cpus", "cpuset.mems")
_NEEDED = frozenset({"cpu", "cpuset", "memory", "pids"})


def prefix_of(state: Path) -> str:
    """The beginning of the cgroup names of the cluster in a state directory."""
    return f"quarterdeck-{hashlib.sha256(os.fsencode(state)).hexdigest()[:10]}-"


def hierarchies(mountinfo: str) -> tuple[Path, ...]:
    """Where cgroup hierarchies are mounted, from the text of /proc/self/mountinfo."""
    found = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] in ("cgroup", "cgroup2"):
            found.append(Path(before.split()[4]))
    return tuple(dict.fromkeys(found))


def create(name: str, roots: tuple[Path, ...] | None = None) -> None:
    """Make a node's cgroup in every hierarchy, ready for pods below it."""
    for root in _mounted() if roots is None else roots:
        cgroup = root / name
        try:
            cgroup.mkdir(exist_ok=True)
            if (root / "cgroup.controllers").exists():
                _hand_down(root, cgroup)
            # In the first version of cgroups, a new cpuset is empty and accepts no process.
            for file in _CPUSET if (root / "notify_on_release").exists() else ():
                if (cgroup / file).exists():
                    (cgroup / file).write_text((root / file).read_text())
        except OSError as error:
            raise LocalClusterError(
                f"cannot make the cgroup {cgroup}: {error.strerror}; real nodes need a machine "
                "whose cgroups are writable"
            ) from None


def _hand_down(root: Path, cgroup: Path) -> None:
    """Let the pods' cgroups have the controllers that the second version has here."""
    available = set((root / "cgroup.subtree_control").read_text().split())
    # A hierarchy beside those of the first version has no controllers.
    if available and (missing := _NEEDED - available):
        raise LocalClusterError(
            f"the cgroup controllers {', '.join(sorted(missing))} are not enabled in "
            f"{root}/cgroup.subtree_control; real nodes need them"
        )
    for controller in sorted(available):
        (cgroup / "cgroup.subtree_control").write_text(f"+{controller}")


def leftovers(prefix: str, roots: tuple[Path, ...] | None = None) -> list[Path]:
    """The cgroups of nodes whose names begin with this prefix."""
    found = []
    for root in _mounted() if roots is None else roots:
        with suppress(OSError):
            found += [path for path in root.iterdir() if path.name.startswith(prefix)]
    return found


def remove(prefix: str, roots: tuple[Path, ...] | None = None) -> None:
    """Remove the cgroups of nodes, and kill what still runs in them."""
    deadline = time.monotonic() + REMOVE_TIMEOUT
    while left := [path for path in leftovers(prefix, roots) if not _removed(path)]:
        if time.monotonic() > deadline:
            raise LocalClusterError(
                f"cannot remove the cgroup {left[0]}: something still runs in it"
            )
        time.sleep(_POLL_PERIOD)


def _removed(cgroup: Path) -> bool:
    """Remove a cgroup and those below it; False if one is still in use."""
    gone = True
    for path in _deepest_first(cgroup):
        try:
            path.rmdir()
        except FileNotFoundError:
            pass
        except OSError:
            gone = False
            _kill_in(path)
    return gone


def _deepest_first(cgroup: Path) -> Iterator[Path]:
    for folder, _, _ in os.walk(cgroup, topdown=False):
        yield Path(folder)


def _kill_in(cgroup: Path) -> None:
    with suppress(OSError):
        pids = {int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()}
        # The kernel shows a process of a PID namespace that is not ours as 0, and to kill 0 would
        # kill our own process group.
        for pid in pids - {0}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _mounted() -> tuple[Path, ...]:
    return hierarchies(MOUNTS.read_text())
