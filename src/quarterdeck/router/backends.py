"""The endpoints of a Service's port. Pure."""

from collections.abc import Iterable, Iterator

import msgspec

from quarterdeck.api.meta import Key, Object
from quarterdeck.haproxy.model import Endpoint
from quarterdeck.router.addresses import refusal
from quarterdeck.router.observed import ObservedRoutes
from quarterdeck.router.settings import Settings


class BackendRef(msgspec.Struct, frozen=True, order=True):
    """The port of a Service: what an Ingress routes to."""

    namespace: str
    service: str
    port: str
    """Its number or its name."""

    @property
    def backend_name(self) -> str:
        """The name of the backend in haproxy.cfg."""
        return f"{self.namespace}:{self.service}:{self.port}"

    @property
    def key(self) -> Key:
        """The key of the Service."""
        return Key(self.namespace, self.service)


def endpoints(
    ref: BackendRef, observed: ObservedRoutes, settings: Settings
) -> tuple[list[Endpoint], str]:
    """The endpoints, and what is wrong in one sentence; empty if nothing is.

    A Service without endpoints is not wrong: its requests get 503 until there are some.
    """
    service = observed.services.get(ref.key)
    if service is None:
        return [], f"Service {ref.service} does not exist; create it"
    spec = service.get("spec") or {}
    port = _port_of(spec, ref.port)
    if spec.get("type") == "ExternalName":
        return _external(spec, ref, observed, settings)
    if port is None:
        return [], f"Service {ref.service} has no port {ref.port}; name one of its ports"
    found = _ready(observed.slices.get(ref.key) or (), port.get("name") or "")
    allowed = [
        one for one in found if not refusal(one.address, (), loopback=settings.loopback_backends)
    ]
    return sorted(set(allowed)), ""


def _port_of(spec: Object, wanted: str) -> Object | None:
    ports: list[Object] = spec.get("ports") or []
    return next((it for it in ports if wanted in (it.get("name"), str(it.get("port")))), None)


def _ready(slices: Iterable[Object], port_name: str) -> list[Endpoint]:
    """The ready endpoints; if there is none, those that still serve while they end."""
    ready, ending = [], []
    for conditions, endpoint in _all(slices, port_name):
        if conditions.get("ready", True) is not False:
            ready.append(endpoint)
        elif conditions.get("serving") and conditions.get("terminating"):
            ending.append(endpoint)
    return ready or ending


def _all(slices: Iterable[Object], port_name: str) -> Iterator[tuple[Object, Endpoint]]:
    for one in slices:
        if one.get("addressType") not in ("IPv4", "IPv6"):
            continue
        numbers = [
            it["port"]
            for it in one.get("ports") or ()
            if (it.get("name") or "") == port_name and it.get("port")
        ]
        for entry in one.get("endpoints") or ():
            for address in (entry.get("addresses") or ())[:1]:
                for number in numbers:
                    yield entry.get("conditions") or {}, Endpoint(address, number)


def _external(
    spec: Object, ref: BackendRef, observed: ObservedRoutes, settings: Settings
) -> tuple[list[Endpoint], str]:
    name = spec.get("externalName") or ""
    if not settings.external_names:
        return (
            [],
            f"Service {ref.service} is of type ExternalName, which this router does not serve",
        )
    port = _port_of(spec, ref.port)
    number = str(port["port"]) if port else ref.port
    if not number.isdigit():
        return [], f"Service {ref.service} has no port {ref.port}; use a number"
    addresses = observed.resolved.get(name)
    if addresses is None:
        return [], ""
    if not addresses:
        return [], f"Service {ref.service}: the name {name} has no address"
    for address in addresses:
        loopback = settings.loopback_backends
        if why := refusal(address, observed.node_addresses, loopback=loopback):
            return [], f"Service {ref.service}: {name} is {address}, {why}, which is refused"
    return sorted({Endpoint(address, int(number)) for address in addresses}), ""
