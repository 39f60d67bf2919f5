"""What wakes the router, and in what order it acts.

Every pod routes, so there is no leader. All changes wake one key: routes depend on each other.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from quarterdeck.api.meta import NAMESPACES, NODES, PODS, SECRETS, SERVICES, Key, Object, foreign
from quarterdeck.api.operator_v1.ingress_controller import CONFIGURATION_ACCEPTED
from quarterdeck.controller import (
    DONE,
    Controller,
    Manager,
    Result,
    Selection,
    Watch,
    key_of,
    to_singleton,
)
from quarterdeck.haproxy.access_log import AccessLog
from quarterdeck.haproxy.errors import HAProxyError, RefusedTextError
from quarterdeck.haproxy.model import Config
from quarterdeck.kube import Cache
from quarterdeck.log import get_logger
from quarterdeck.router.access_logging import AccessLogWatch
from quarterdeck.router.admin import CommandError
from quarterdeck.router.certificates import self_signed
from quarterdeck.router.metrics import Figure, add_metrics
from quarterdeck.router.observed import ObservedRoutes
from quarterdeck.router.planning import config_of, plan
from quarterdeck.router.pod_conditions import ConditionReport, PodConditions
from quarterdeck.router.proxy import ConfigRefusedError, HAProxy
from quarterdeck.router.refused import RefusedIngress, left_out, names, unchanged
from quarterdeck.router.refused import problems as blamed
from quarterdeck.router.resolver import Resolver, is_own
from quarterdeck.router.routing import Routing, routes
from quarterdeck.router.settings import Settings

log = get_logger("router")

INGRESSES = foreign("networking.k8s.io/v1", "Ingress", "ingresses", namespaced=True)

ENDPOINT_SLICES = foreign("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", namespaced=True)
_SERVICE_NAME = "kubernetes.io/service-name"
_ROUTES = Key("", "routes")
_MOST_ATTEMPTS = 20
"""How often the router leaves out what HAProxy refuses before it waits for the next reload."""
RESOLVE_TIMEOUT = 5.0
"""Seconds that the first configuration waits for the addresses of external names."""


class RouterCaches:
    """The objects that routes depend on."""

    def __init__(self, manager: Manager) -> None:
        self.ingresses = manager.cache(INGRESSES)
        self.services = manager.cache(SERVICES)
        self.slices = manager.cache(ENDPOINT_SLICES)
        self.secrets = manager.cache(SECRETS, Selection(fields="type=kubernetes.io/tls"))
        self.namespaces = manager.cache(NAMESPACES)
        self.nodes = manager.cache(NODES)

    def watches(self) -> list[Watch]:
        """Every change wakes the routes, except heartbeats of nodes."""
        to_routes = to_singleton(_ROUTES)
        return [
            *(
                Watch(cache, to_routes)
                for cache in (
                    *(self.ingresses, self.services, self.slices),
                    *(self.secrets, self.namespaces),
                )
            ),
            Watch(self.nodes, to_routes, lambda old, new: _addresses([old]) != _addresses([new])),
        ]

    def observed(self, resolver: Resolver) -> ObservedRoutes:
        """What they have now."""
        slices: dict[Key, list[Object]] = defaultdict(list)
        for one in self.slices.list():
            meta = one["metadata"]
            if name := (meta.get("labels") or {}).get(_SERVICE_NAME):
                slices[Key(meta["namespace"], name)].append(one)
        return ObservedRoutes(
            ingresses=self.ingresses.list(),
            services=_by_key(self.services),
            slices=slices,
            secrets=_by_key(self.secrets),
            namespaces={
                one["metadata"]["name"]: one["metadata"].get("labels") or {}
                for one in self.namespaces.list()
            },
            node_addresses=_addresses(self.nodes.list()) | resolver.own,
            resolved=resolver.resolved,
        )


class Router:
    """Keeps HAProxy's configuration as the cluster's objects say."""

    def __init__(self, manager: Manager, settings: Settings, directory: Path) -> None:
        self._manager = manager
        self._settings = settings
        self._caches = RouterCaches(manager)
        self._reloaded_at: float | None = None
        self._first_look: float | None = None
        self._reported: set[tuple[str, str]] = set()
        self._left_out: dict[str, RefusedIngress] = {}
        self._conditions = PodConditions(manager.replica_client, settings, manager.now)
        self.proxy = HAProxy(directory, stop_delay=settings.stop_delay)
        self.controller = Controller(
            "routes",
            self._reconcile,
            self._caches.watches(),
            needs_leader=False,
            at_start=[_ROUTES],
        )
        self._resolver = Resolver(lambda: self.controller.wake(_ROUTES))
        self._base = _base_config(settings, directory, manager.now())

    def start(self) -> None:
        """Add the router's parts to its manager."""
        self._manager.add(self.controller)
        self._manager.add_task("haproxy", self.proxy.run, always=True)
        self._manager.declare(
            PODS, "get", selection=Selection(namespace=self._settings.pod_namespace)
        )
        self._manager.add_task("conditions", self._conditions.run, always=True)
        self._manager.add_task("external names", self._resolver.run, always=True)
        self._manager.ready_unless(lambda: self.proxy.trouble)
        proxy = self.proxy
        figures: list[Figure] = [
            ("quarterdeck_router_reloads", "Reloads of HAProxy.", lambda: proxy.reloads),
            ("quarterdeck_router_starts", "Starts of HAProxy.", lambda: proxy.starts),
        ]
        if self._settings.access_log is not None:
            figures += self._add_access_logging(self._settings.access_log)
        add_metrics(self._manager.registry, figures)

    def _add_access_logging(self, access_log: AccessLog) -> "list[Figure]":
        logging = AccessLogWatch(access_log, self.proxy, self._conditions)
        self._manager.add_task("access logging", logging.run, always=True)
        return [
            (
                "quarterdeck_router_access_requests",
                "Requests of which HAProxy writes an access line.",
                lambda: logging.tally.requests,
            ),
            (
                "quarterdeck_router_access_lines",
                "Access lines that arrived at the sidecar.",
                lambda: logging.tally.arrived,
            ),
            (
                "quarterdeck_router_access_lines_lost",
                "Access lines that are known to be lost.",
                lambda: logging.tally.lost,
            ),
        ]

    async def _reconcile(self, _key: Key) -> Result:
        observed, routing = self._look()
        self._resolver.want(routing.external_names)
        self._report(routing)
        proxy = self.proxy
        if proxy.config is None:
            if wait := self._wait_for_names(routing.external_names):
                return Result(requeue_after=wait)
            return await self._reload(config_of(routing, self._base, None), routing, observed)
        planned = plan(proxy.config, routing)
        if planned.commands:
            try:
                await proxy.change(planned.commands, planned.adapted)
            except CommandError as error:
                # A reload makes good what a command did not.
                log.warning("haproxy refused a command, reloading", error=str(error))
                wanted = config_of(routing, self._base, proxy.config)
                return await self._reload(wanted, routing, observed)
        if planned.reload is not None:
            return await self._reload(planned.reload, routing, observed)
        self._accepted()
        return DONE

    def _look(self) -> tuple[ObservedRoutes, Routing]:
        """What there is now, and its routes without what HAProxy refused."""
        observed = self._caches.observed(self._resolver)
        self._left_out = unchanged(self._left_out, observed)
        observed = msgspec.structs.replace(observed, left_out=frozenset(self._left_out))
        return observed, routes(observed, self._settings)

    def _wait_for_names(self, names: frozenset[str]) -> float:
        """Seconds to wait for the first addresses; the resolver wakes the routes sooner.

        Without them, a router that starts again would take endpoints away that HAProxy serves.
        """
        now = self._manager.clock()
        if self._first_look is None:
            self._first_look = now
        if names <= self._resolver.resolved.keys():
            return 0.0
        return max(0.0, self._first_look + RESOLVE_TIMEOUT - now)

    async def _reload(self, config: Config, routing: Routing, observed: ObservedRoutes) -> Result:
        """Load the configuration, or say when the next reload is due."""
        now = self._manager.clock()
        if self._reloaded_at is not None:
            remaining = self._reloaded_at + self._settings.reload_interval - now
            if remaining > 0:
                return Result(requeue_after=remaining)
        self._reloaded_at = now
        for _ in range(_MOST_ATTEMPTS):
            try:
                await self.proxy.load(config)
            except ConfigRefusedError as error:
                found = blamed(error.complaints, error.config, routing.users)
                if not found:
                    self._say_refused(error)
                    return DONE
                log.error("configuration refused, leaving out who is to blame", error=str(error))
                self._left_out |= left_out(found, observed)
                observed, routing = self._look()
                self._report(routing)
                config = config_of(routing, self._base, self.proxy.config)
            except RefusedTextError as error:
                self._say_refused(error)
                return DONE
            except CommandError as error:
                log.error("the new worker does not answer, reloading again", error=str(error))
                self.proxy.config = None
                break
            else:
                self._accepted()
                return DONE
        return Result(requeue_after=self._settings.reload_interval)

    def _accepted(self) -> None:
        message = "HAProxy runs with the latest configuration"
        if self._left_out:
            message += f", without what it refuses: Ingress {names(self._left_out.values())}"
        self._conditions.report(CONFIGURATION_ACCEPTED, ConditionReport(True, "Accepted", message))

    def _say_refused(self, error: HAProxyError) -> None:
        """Say that what runs goes on, and why.

        Everything was checked before, so this is a fault of ours or of HAProxy's version. The next
        change may be good.
        """
        log.error("configuration refused, keeping the one before", error=str(error))
        self._conditions.report(
            CONFIGURATION_ACCEPTED, ConditionReport(False, "Refused", str(error))
        )

    def _report(self, routing: Routing) -> None:
        """Record an event about each new problem; one that is gone and comes back is new."""
        problems = (*routing.problems, *(one.problem for one in self._left_out.values()))
        found = {(str(one.about["metadata"]["uid"]), one.message) for one in problems}
        for one in problems:
            at = (str(one.about["metadata"]["uid"]), one.message)
            if at not in self._reported:
                self._reported.add(at)
                self._manager.events.event(
                    one.about, "Warning", one.reason, one.message, action="Route", once=one.message
                )
                log.warning("skipped", ingress=str(key_of(one.about)), reason=one.message)
        self._reported &= found


def _base_config(settings: Settings, directory: Path, now: datetime) -> Config:
    """The configuration without routes."""
    ipv6 = is_own("::")
    return Config(
        http_bind=settings.bind(settings.http_port, ipv6=ipv6),
        https_bind=settings.bind(settings.https_port, ipv6=ipv6),
        sockets=str(directory),
        access_log=settings.access_log,
        default_certificate=_default_certificate(directory, settings, now),
    )


def _default_certificate(directory: Path, settings: Settings, now: datetime) -> str:
    """The self-signed certificate, made once for a pod."""
    path = directory / "default.pem"
    try:
        return path.read_text(encoding="ascii")
    except FileNotFoundError:
        made = self_signed(f"router-{settings.name}", now)
    new = directory / "default.pem.new"
    new.touch(mode=0o600)
    new.write_text(made, encoding="ascii")
    new.rename(path)
    return made


def _by_key(cache: Cache[Object]) -> dict[Key, Object]:
    return {key_of(one): one for one in cache.list()}


def _addresses(nodes: Sequence[Object | None]) -> frozenset[str]:
    return frozenset(
        entry["address"]
        for node in nodes
        if node is not None
        for entry in (node.get("status") or {}).get("addresses") or ()
        if entry.get("type") in ("InternalIP", "ExternalIP")
    )
