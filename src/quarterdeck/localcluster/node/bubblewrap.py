"""Whether bubblewrap can put processes into namespaces on this machine."""

import shutil
import subprocess

from quarterdeck.localcluster.errors import LocalClusterError


class NoNamespaces(LocalClusterError):  # noqa: N818 - as its siblings, it says what is the case
    """Processes cannot be put into namespaces here, so pods cannot run."""


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
        raise NoNamespaces(
            f"bubblewrap may not make namespaces here ({tried.stderr.strip()}); allow it with: "
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root"
        )
