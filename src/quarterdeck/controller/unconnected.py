"""What an operator would ask of a cluster, found out without one."""

import time
from collections.abc import Callable

from quarterdeck.api.meta import Key
from quarterdeck.controller.caches import Caches
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.manager import Manager
from quarterdeck.controller.members import Shared
from quarterdeck.controller.metrics import Metrics
from quarterdeck.controller.process import wall_clock
from quarterdeck.controller.uses import Use
from quarterdeck.kube import Client, Connection

NOWHERE = "http://127.0.0.1:1"
"""No request is sent: a manager that does not run sends none."""


def recorded_uses(setup: Callable[[Manager], None]) -> tuple[Use, ...]:
    """What this operator asks of its manager when it is set up."""
    client = Client(Connection(server=NOWHERE, tls=None))
    shared = Shared(
        caches=Caches(client, ()),
        metrics=Metrics(time.monotonic),
        clock=time.monotonic,
        wall=wall_clock,
        namespace="",
    )
    manager = Manager(
        "unconnected",
        shared=shared,
        client=client,
        unfenced=client,
        field_manager="unconnected",
        events=Recorder(
            client, controller="unconnected", instance="", clock=time.monotonic, wall=wall_clock
        ),
        lease=None,
        home=Key("", ""),
    )
    setup(manager)
    return manager.uses
