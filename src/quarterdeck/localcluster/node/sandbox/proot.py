"""Starts and enters containers in proot: their scratch directories, and the keeper's orders.

A command enters a running container by a second proot with the same view.
"""

import marshal
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from quarterdeck.localcluster.node.sandbox.mounts import FileKind
from quarterdeck.localcluster.node.sandbox.orders import inside, open_order, order_in_proot
from quarterdeck.localcluster.node.sandbox.proot_view import Allowed, ProotView, proot_options
from quarterdeck.localcluster.node.volumes.files import remove_tree


@cache
def proot() -> str:
    """The path of the program, from our PATH at the first call."""
    return shutil.which("proot") or "/usr/bin/proot"


@cache
def loader() -> bytes:
    """The loader that proot uses to start programs.

    proot unpacks it to /tmp at each start, where a container must not write.
    """
    with subprocess.Popen(
        [proot(), "/bin/sh", "-c", "echo $$; read _"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={},
    ) as run:
        if run.stdout is None or not (pid := run.stdout.readline().strip()):
            errors = run.stderr.read().decode() if run.stderr else ""
            raise OSError(" ".join(errors.split()) or "proot runs nothing")
        return Path(f"/proc/{int(pid)}/exe").read_bytes()


def create_scratch(view: ProotView) -> None:
    """Create the directories of a container, and remove those of an earlier run."""
    scratch = Path(view.scratch)
    remove_tree(scratch)
    scratch.mkdir(parents=True, mode=0o755)
    loading = Path(view.loader)
    loading.write_bytes(loader())
    loading.chmod(0o555)
    for made in view.made:
        path = Path(made.path)
        match made.kind:
            case FileKind.DIRECTORY:
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(made.mode)
            case FileKind.FILE:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            case FileKind.LINK:
                path.symlink_to(made.to)
            case FileKind.NOTHING:
                pass


class KeeperOrders:
    """The orders for one start or entry of a container, as inheritable descriptors."""

    def __init__(
        self,
        view: ProotView,
        command: Sequence[str],
        variables: Mapping[str, str] | Mapping[bytes, bytes],
        directory: str,
        *,
        parent: int | None,
        status: int | None = None,
        beside: int | None = None,
    ) -> None:
        keeper = os.memfd_create("order")
        self.descriptors = [keeper]
        os.set_inheritable(keeper, True)
        # After the keeper has read its order, the descriptor becomes that of the report.
        first = self._open(order_in_proot(command, variables, directory, report=keeper))
        words = [proot(), *proot_options(view), *inside(first)]
        confine = self._open(
            marshal.dumps(
                {
                    "command": words,
                    "variables": {
                        "PATH": "/usr/bin:/bin",
                        "PROOT_LOADER": view.loader,
                        "PROOT_TMP_DIR": view.temporary,
                        "PROOT_DONT_POLLUTE_ROOTFS": "1",
                    },
                    "readable": [_plain(each) for each in view.readable],
                    "writable": [_plain(each) for each in view.writable],
                }
            )
        )
        order = {
            "command": _program("confine.py", confine),
            "parent": parent,
            "status": status,
            "beside": beside,
            "report": keeper,
        }
        os.write(keeper, marshal.dumps(order))
        self.command = _program("keeper.py", keeper)

    def _open(self, order: bytes) -> int:
        self.descriptors.append(open_order(order))
        return self.descriptors[-1]

    def close(self) -> None:
        """Close our descriptors after they are inherited."""
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()


def _program(name: str, descriptor: int) -> list[str]:
    path = str(Path(__file__).with_name(name))
    return [sys.executable, "-I", "-S", path, str(descriptor)]


def _plain(allowed: Allowed) -> tuple[str, tuple[int, int] | None, str]:
    return allowed.path, allowed.identity, allowed.seen_at
