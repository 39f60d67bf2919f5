"""The program of a real node: enters new namespaces, and ends with its parent.

The order is its only argument, as JSON. This process stays outside the PID namespace: the
supervisor sees and kills it, and the node's first process ends with it.
"""

import os
import select
import signal
import sys

from quarterdeck.localcluster.real_nodes import libc
from quarterdeck.localcluster.real_nodes.first_process import decode, run_node

NAMESPACES = (
    libc.CLONE_NEWNS | libc.CLONE_NEWPID | libc.CLONE_NEWIPC | libc.CLONE_NEWUTS | libc.CLONE_NEWNET
)


def main(arguments: list[str]) -> int:
    """Run the node in namespaces of its own, and return its exit code."""
    order = decode(arguments[0])
    libc.unshare(NAMESPACES)
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        libc.end_with_parent(signal.SIGKILL)
        if select.select([alive], [], [], 0)[0]:  # The parent ended before the request.
            os._exit(1)
        os.close(alive)
        run_node(order)
    os.close(alive)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
