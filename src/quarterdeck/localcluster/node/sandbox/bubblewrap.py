"""Whether bubblewrap can put processes into namespaces on this machine."""

import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from quarterdeck.localcluster.errors import LocalClusterError

IN_THE_WAY = {
    "user.max_user_namespaces": ("0", "15000"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
}
"""Settings of the kernel, the value that forbids user namespaces, and one that allows them."""


class NoNamespaces(LocalClusterError):  # noqa: N818 - as its siblings, it says what is the case
    """Processes cannot be put into namespaces here, so pods cannot run."""


@cache
def bubblewrap() -> str:
    """Where the program is, by our own PATH and once for all."""
    return shutil.which("bwrap") or "/usr/bin/bwrap"


def check_bubblewrap() -> None:
    """Try it, and say in one line what is in the way and what helps."""
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
        said = " ".join(tried.stderr.split())
        raise NoNamespaces(
            f"bubblewrap may not make namespaces here ({said}); {remedy(_settings_of_the_kernel())}"
        )


def remedy(kernel: Mapping[str, str]) -> str:
    """What helps, by the settings of the kernel that stand in the way of user namespaces."""
    wrong = [(name, good) for name, (bad, good) in IN_THE_WAY.items() if kernel.get(name) == bad]
    if not wrong:
        return "run as root, or outside of the container that forbids it"
    words = " ".join(f"{name}={good}" for name, good in wrong)
    return f"allow it with: sudo sysctl {words}, or run as root"


def _settings_of_the_kernel() -> dict[str, str]:
    found = {}
    for name in IN_THE_WAY:
        with suppress(OSError):
            path = Path("/proc/sys", *name.split("."))
            found[name] = path.read_text().strip()
    return found
