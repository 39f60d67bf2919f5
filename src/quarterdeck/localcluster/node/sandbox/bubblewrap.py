"""Bubblewrap on this machine: whether it can create namespaces, and how far it is with a container.

Bubblewrap does not report its progress, so it is read from /proc.
"""

import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from quarterdeck.localcluster.errors import LocalClusterError

BLOCKING_SETTINGS = {
    "user.max_user_namespaces": ("0", "15000"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
}
"""Kernel settings: the value that forbids user namespaces, and one that allows them."""


CAP_SYS_ADMIN = 21


class NoNamespaces(LocalClusterError):  # noqa: N818 - as its siblings, it says what is the case
    """The machine does not allow namespaces, so pods cannot run."""


@cache
def bubblewrap() -> str:
    """The path of the program, from our PATH at the first call."""
    return shutil.which("bwrap") or "/usr/bin/bwrap"


def check_bubblewrap() -> None:
    """Run bubblewrap once; raise the fault and a remedy in one line."""
    if shutil.which("bwrap") is None:
        raise NoNamespaces(
            "bubblewrap is missing; install it with: sudo apt-get install bubblewrap"
        )
    tried = subprocess.run(
        ["bwrap", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode != 0:
        error = " ".join(tried.stderr.split())
        raise NoNamespaces(
            f"bubblewrap may not make namespaces here ({error}); {remedy(_kernel_settings())}"
        )


def remedy(kernel: Mapping[str, str]) -> str:
    """The remedy for the kernel settings that forbid user namespaces."""
    wrong = [
        (name, good) for name, (bad, good) in BLOCKING_SETTINGS.items() if kernel.get(name) == bad
    ]
    if not wrong:
        return "run as root, or outside of the container that forbids it"
    words = " ".join(f"{name}={good}" for name, good in wrong)
    return f"allow it with: sudo sysctl {words}, or run as root"


def _kernel_settings() -> dict[str, str]:
    found = {}
    for name in BLOCKING_SETTINGS:
        with suppress(OSError):
            path = Path("/proc/sys", *name.split("."))
            found[name] = path.read_text().strip()
    return found


def mounts_are_made(pid: int) -> bool:
    """Whether bubblewrap has made all mounts, after which it drops CAP_SYS_ADMIN."""
    return not _capabilities(pid) >> CAP_SYS_ADMIN & 1


def _capabilities(pid: int) -> int:
    """The effective capabilities of a process, as bits; all for one that has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return -1
    line = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return int(line.split()[1], 16)


def is_set_up(pid: int) -> bool:
    """Whether the container's program runs without capabilities.

    A process that changes its user has some until then.
    """
    try:
        program = Path(f"/proc/{pid}/exe").readlink()
    except OSError:
        return False
    return program != Path(bubblewrap()).resolve() and _capabilities(pid) == 0
