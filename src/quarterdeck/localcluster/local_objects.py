"""Brings the objects that operators declare for a local cluster, so that there is something to try.

They are created if they are missing, and then belong to the administrator: one that does not get
ready is reported, and the cluster starts all the same.
"""

import time
from collections.abc import Callable, Iterable

from quarterdeck.api.meta import Object
from quarterdeck.delivery.declaration import Declaration, LocalObjects, load
from quarterdeck.localcluster.access import ClusterAccess
from quarterdeck.localcluster.errors import LocalClusterError
from quarterdeck.localcluster.operators import create_if_missing, full_kind, is_deployed
from quarterdeck.localcluster.ports import operator_ports
from quarterdeck.localcluster.state import Layout

READY_TIMEOUT = 60.0
"""Seconds after which objects that are not ready are reported."""

Show = Callable[[str], None]


def local_ports(layout: Layout, declared: Declaration) -> dict[str, int]:
    """The ports of an operator's objects by name."""
    wanted = declared.local.objects
    return operator_ports(layout, declared.name, wanted.ports) if wanted else {}


def bring_local_objects(
    cluster: ClusterAccess, operators: Iterable[Declaration], show: Show
) -> None:
    """Create the missing objects of these operators, and wait until all are ready."""
    brought: list[tuple[LocalObjects, Object]] = []
    for declared in operators:
        wanted = declared.local.objects
        # An operator whose capability is off is not deployed, and its kinds do not exist.
        if wanted is None or not is_deployed(cluster, declared):
            continue
        try:
            for obj in load(wanted.objects)(local_ports(cluster.layout, declared)):
                create_if_missing(cluster, obj)
                brought.append((wanted, obj))
        except LocalClusterError as error:
            show(f"the objects of the operator {declared.name} are left out: {error}")
    deadline = time.monotonic() + READY_TIMEOUT
    for wanted, obj in brought:
        if wanted.ready:
            show(f"waiting for {obj['kind']} {obj['metadata']['name']}")
            _wait_ready(cluster, obj, wanted.ready, deadline, show)


def _wait_ready(
    cluster: ClusterAccess, obj: Object, condition: str, deadline: float, show: Show
) -> None:
    metadata = obj["metadata"]
    where = (f"--namespace={metadata['namespace']}",) if "namespace" in metadata else ()
    target = f"{full_kind(obj)}/{metadata['name']}"
    # Not the last second: `kubectl wait` takes a time-out of zero for a single look.
    left = max(1.0, deadline - time.monotonic())
    limits = (f"--for=condition={condition}", f"--timeout={left:.0f}s")
    answer = cluster.kubectl("wait", target, *where, *limits, check=False)
    if answer.returncode != 0:
        see = f"quarterdeck local kubectl describe {target} {' '.join(where)}".rstrip()
        show(f"{obj['kind']} {metadata['name']} is not {condition} yet; see: {see}")
