"""Runs operators in one process: signals, probes, and the end.

Operators are independent: each has its own field manager, Lease and client. If an operator cannot
be set up, or waits for a resource type, `/readyz` reports it and the others work. Operators share
the connection's settings, the caches and the metrics. They end together: a crashed controller or a
lost Lease ends the process, because its state in memory is no longer known to be good.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from quarterdeck.api.meta import Key
from quarterdeck.controller.caches import Caches
from quarterdeck.controller.controller_set import ProcessContext
from quarterdeck.controller.election import Candidate, LeadershipLost, Timing
from quarterdeck.controller.events import Recorder
from quarterdeck.controller.lease import Lease
from quarterdeck.controller.manager import Manager
from quarterdeck.controller.metrics import Metrics
from quarterdeck.controller.probes import Probes
from quarterdeck.controller.tasks import endless
from quarterdeck.kube import Client, Connection
from quarterdeck.kube.cache import WATCH_GRACE_PERIOD
from quarterdeck.kube.server_clock import boot_clock
from quarterdeck.log import get_logger

if TYPE_CHECKING:
    from quarterdeck.controller.certificate_renewal import CertificateRenewal

log = get_logger("controller.process")


def wall_clock() -> datetime:
    """The time of day."""
    return datetime.now(UTC)  # noqa: TID251 - this machine's, by its name


class ProcessSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a process runs its operators."""

    identity: str
    """The holder identity in a Lease: the pod's name and a random part."""
    namespaces: tuple[str, ...] = ()
    """Watch only these namespaces; all if empty."""
    election: Timing | None = None
    """The times of leader election; None to lead without a Lease."""
    probe_address: str = "127.0.0.1:8081"
    release_version: str = ""
    """The version of the process's release; empty outside of a release."""
    watch_grace_period: float = WATCH_GRACE_PERIOD
    """Seconds that an operator may be without one of its watches before it is not ready."""
    certificate_lifetime: timedelta | None = None
    """The lifetime of the client certificates by which the process renews its own; None if
    somebody else does that."""
    drain: float = 20.0
    """Seconds that running reconciles have to finish after a SIGTERM."""


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """One operator for a process to run."""

    name: str
    setup: Callable[[Manager], None]
    field_manager: str
    lease_namespace: str
    lease_name: str
    """Empty for an operator without leader election, whose replicas all work at once."""
    namespace: str = ""
    """The operator's own namespace; by default that of its Lease."""


class NothingToRun(Exception):  # noqa: N818 - reads as what happened
    """No operator could be set up."""


class Process:
    """The operators of one process."""

    def __init__(
        self, operators: list[Operator], connection: Connection, settings: ProcessSettings
    ):
        self._operators = operators
        self._connection = connection
        self._settings = settings
        self._metrics = Metrics(time.monotonic)
        self._managers: list[Manager] = []
        self._failed: dict[str, str] = {}
        self._renewal: CertificateRenewal | None = None

    def readiness(self) -> dict[str, str]:
        """By operator: why it is not ready; empty if it is ready.

        The client certificate is there too, if the process renews it.
        """
        found = {manager.name: manager.trouble for manager in self._managers} | self._failed
        if self._renewal is not None:
            found["client certificate"] = self._renewal.trouble
        return found

    async def run(self) -> None:
        """Run until SIGTERM or SIGINT; raise what ends the process otherwise."""
        async with AsyncExitStack() as stack:
            reader = await stack.enter_async_context(self._client())
            caches = Caches(reader, [operator.field_manager for operator in self._operators])
            await self._set_up(stack, caches, reader)
            clients = [manager.client for manager in self._managers]
            probes = await stack.enter_async_context(Probes(self._settings.probe_address))
            stop = stack.enter_context(_signals())
            for manager in self._managers:
                manager.finish_setup()
            await asyncio.gather(*(manager.take_lease_if_free() for manager in self._managers))
            caching = asyncio.create_task(endless("caches", caches.run(clients)), name="caches")
            await self._run_managers(stop, caching, probes)

    async def _run_managers(
        self, stop: asyncio.Event, caching: "asyncio.Task[None]", probes: Probes
    ) -> None:
        """Run the managers until `stop` is set or one of them ends, then stop them all."""
        tasks = [
            asyncio.create_task(endless(f"operator {it.name}", it.run()), name=it.name)
            for it in self._managers
        ]
        stopped = asyncio.create_task(stop.wait(), name="signals")
        try:
            await probes.load()
            await probes.serve(self.readiness, self._metrics.registry)
            await asyncio.wait({stopped, caching, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set():
                log.info("stopping", operators=[it.name for it in self._managers])
                await asyncio.gather(*(it.drain(self._settings.drain) for it in self._managers))
        finally:
            ended = [caching, stopped, *tasks]
            for task in ended:
                task.cancel()
            ends = await asyncio.gather(*ended, return_exceptions=True)
            # Another replica may lead only now that nothing runs any more.
            await asyncio.gather(*(it.close() for it in self._managers))
        for end in ends:
            if isinstance(end, Exception):
                why = root_cause(end)
                if not isinstance(why, LeadershipLost):
                    log.error("crashed", exc_info=why)
                raise why

    async def _set_up(self, stack: AsyncExitStack, caches: Caches, reader: Client) -> None:
        """Make the managers; an operator whose `setup` fails is reported and left out."""
        shared = ProcessContext(
            caches=caches,
            metrics=self._metrics,
            clock=time.monotonic,
            wall=wall_clock,
            namespaces=self._settings.namespaces,
            release_version=self._settings.release_version,
            watch_grace_period=self._settings.watch_grace_period,
        )
        for operator in self._operators:
            client = await stack.enter_async_context(self._client())
            manager = self._manager(operator, shared, client, reader)
            try:
                operator.setup(manager)
            except (Exception, SystemExit) as error:
                log.exception("operator failed to start", operator=operator.name)
                self._failed[operator.name] = f"failed to start: {error}"
                manager.discard()
            else:
                self._managers.append(manager)
        if not self._managers:
            raise NothingToRun("; ".join(f"{n}: {why}" for n, why in self._failed.items()))
        if self._settings.certificate_lifetime is not None:
            # Imported here, because few processes sign in by a certificate of their own.
            from quarterdeck.controller import certificate_renewal as renewal

            file = renewal.certificate_file(self._connection)
            lifetime = self._settings.certificate_lifetime
            self._renewal = renewal.CertificateRenewal(self._managers[0], file, lifetime)

    def _manager(
        self, operator: Operator, shared: ProcessContext, client: Client, replica_client: Client
    ) -> Manager:
        lease = self._lease(operator, replica_client)
        if lease is not None:
            client.before_write = lease.check
        manager = Manager(
            operator.name,
            shared=shared,
            client=client,
            replica_client=replica_client,
            field_manager=operator.field_manager,
            events=Recorder(
                replica_client,
                controller=operator.field_manager,
                instance=self._settings.identity,
                clock=time.monotonic,
            ),
            lease=lease,
            home=Key(operator.namespace or operator.lease_namespace, operator.lease_name),
        )
        if lease is not None:
            self._metrics.leaders.watch(operator.lease_name, lambda: float(manager.leads))
        return manager

    def _lease(self, operator: Operator, client: Client) -> Lease | None:
        if self._settings.election is None or not operator.lease_name:
            return None
        candidate = Candidate(
            namespace=operator.lease_namespace,
            name=operator.lease_name,
            identity=self._settings.identity,
            timing=self._settings.election,
        )
        return Lease(client, candidate, clock=boot_clock, wall=wall_clock)

    def _client(self) -> Client:
        return Client(self._connection, metrics=self._metrics.requests)


def root_cause(error: Exception) -> Exception:
    """The one error to report of a group; lost leadership before all others."""
    leaves = list(_leaves(error))
    return next((leaf for leaf in leaves if isinstance(leaf, LeadershipLost)), leaves[0])


def _leaves(error: Exception) -> Iterator[Exception]:
    if isinstance(error, ExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


@contextmanager
def _signals() -> Iterator[asyncio.Event]:
    """An event that the first SIGTERM or SIGINT sets; the second one ends the process at once."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stop_once() -> None:
        stop.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, stop_once)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
