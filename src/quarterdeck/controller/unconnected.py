"""Finds out which requests an operator declares, without a cluster."""

import time
from collections.abc import Callable

from quarterdeck.api.meta import Key
from quarterdeck.controller.caches import Caches
from quarterdeck.controller.controller_set import ProcessContext
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.manager import Manager
from quarterdeck.controller.metrics import Metrics
from quarterdeck.controller.process import wall_clock
from quarterdeck.controller.uses import Use
from quarterdeck.kube import Client, Connection

UNUSED_SERVER = "http://127.0.0.1:1"
"""A server address that no request goes to: a manager that does not run sends none."""


NO_HOME = Key("", "")


def recorded_uses(
    setup: Callable[[Manager], None],
    *,
    name: str = "unconnected",
    field_manager: str = "unconnected",
    home: Key = NO_HOME,
    namespaces: tuple[str, ...] = (),
) -> tuple[Use, ...]:
    """The requests that this operator's `setup` declares.

    `name`, `field_manager` and `home` are those of the manager that will run the operator: one that
    reads only its own namespace gets rights only there. `namespaces` are those of its `--namespace`
    options.
    """
    client = Client(Connection(server=UNUSED_SERVER, tls=None))
    shared = ProcessContext(
        caches=Caches(client, ()),
        metrics=Metrics(time.monotonic),
        clock=time.monotonic,
        wall=wall_clock,
        namespaces=namespaces,
    )
    manager = Manager(
        name,
        shared=shared,
        client=client,
        replica_client=client,
        field_manager=field_manager,
        events=Recorder(client, controller=name, instance="", clock=time.monotonic),
        lease=None,
        home=home,
    )
    setup(manager)
    return manager.uses
