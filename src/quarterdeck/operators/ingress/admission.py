"""Whether the spec of an IngressController can be carried out. Pure.

The API server has checked what a definition can say. `log_format` asks HAProxy about the format of
access lines, which no definition can check.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from quarterdeck.api.meta import Object
from quarterdeck.api.operator_v1 import IngressController, LabelSelectorPart
from quarterdeck.api.operator_v1.access_logging import LoggingDestinations
from quarterdeck.api.union import needs_parameters, union_types
from quarterdeck.controller import InvalidSpec, key_of, selector_in
from quarterdeck.kube import LabelSelector
from quarterdeck.operators.ingress.names import LOG_SOCKET

LONGEST_NAME = 47
"""The name of a Service, `router-internal-` and the controller's, has at most 63 characters."""
SOCKETS = ("stream", "datagram")
LONGEST_VARIABLE = 128 * 1024 - 1
"""Bytes of `NAME=value`: the kernel starts no process with a longer one."""
_FIELDS = {
    "ROUTER_SYSLOG_FORMAT": "spec.logging.access.httpLogFormat",
    "ROUTER_CAPTURE_HTTP_REQUEST_HEADERS": "spec.logging.access.httpCaptureHeaders.request",
    "ROUTER_CAPTURE_HTTP_RESPONSE_HEADERS": "spec.logging.access.httpCaptureHeaders.response",
    "ROUTE_LABELS": "spec.routeSelector",
    "NAMESPACE_LABELS": "spec.namespaceSelector",
}
"""The fields from which variables of any length follow."""


class Admission(msgspec.Struct, frozen=True):
    """Whether the spec is carried out; if not, why, and the operands stay as they are."""

    admitted: bool
    reason: str
    message: str = ""


ADMITTED = Admission(True, "Valid")


def admission(controller: IngressController) -> Admission:
    """The first fault of the spec, with field, value and remedy."""
    for rule in RULES:
        try:
            rule(controller)
        except InvalidSpec as fault:
            return Admission(False, "InvalidSpec", str(fault))
    return ADMITTED


def name_fits(controller: IngressController) -> None:
    """The name is part of the names of Services and the value of a label."""
    name = controller.metadata.name
    if len(name) > LONGEST_NAME or not re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
        remedy = f"use at most {LONGEST_NAME} lower-case letters, digits and hyphens, and no dot"
        raise InvalidSpec("metadata.name", name, remedy)


def replicas_are_a_number_of_pods(controller: IngressController) -> None:
    """There are no fewer than no pods."""
    if controller.replicas < 0:
        raise InvalidSpec("spec.replicas", controller.replicas, "use 0 or more")


def ports_differ(controller: IngressController) -> None:
    """On the host's network each port is used once, and port 0 is none."""
    if controller.strategy.type != "HostNetwork":
        return
    names = ("httpPort", "httpsPort", "statsPort")
    ports = dict(zip(names, controller.strategy.host_ports, strict=True))
    field = "spec.endpointPublishingStrategy.hostNetwork"
    for name, port in ports.items():
        if port == 0:
            raise InvalidSpec(f"{field}.{name}", port, "use a port from 1 to 65535")
        others = [other for other in ports if other != name and ports[other] == port]
        if others:
            raise InvalidSpec(f"{field}.{name}", port, f"{others[0]} is the same; change one")


def selectors_are_valid(controller: IngressController) -> None:
    """Selectors have operators and values that can be evaluated."""
    spec = controller.spec
    placement = spec.node_placement
    nodes = placement.node_selector if placement else None
    selector("spec.namespaceSelector", spec.namespace_selector)
    selector("spec.routeSelector", spec.route_selector)
    selector("spec.nodePlacement.nodeSelector", nodes)


def log_socket_is_known(controller: IngressController) -> None:
    """The annotation for the sidecar's socket has one of two values."""
    value = controller.metadata.annotations.get(LOG_SOCKET)
    if value is not None and value not in SOCKETS:
        field = f"metadata.annotations[{LOG_SOCKET}]"
        raise InvalidSpec(field, value, f"use {' or '.join(SOCKETS)}")


def destination_is_complete(controller: IngressController) -> None:
    """The chosen destination has its parameters, also if another definition did not ask for them.

    Without an address the router would not log, and nobody would know.
    """
    logging = controller.spec.logging
    if logging is None or logging.access is None:
        return
    destination, field = logging.access.destination, "spec.logging.access.destination"
    member = destination.member
    if not member:
        types = " or ".join(union_types(LoggingDestinations))
        raise InvalidSpec(f"{field}.type", destination.type, f"use {types}")
    if getattr(destination, member) is None and needs_parameters(LoggingDestinations, member):
        raise InvalidSpec(f"{field}.{member}", None, f"give the parameters of {destination.type}")


RULES: tuple[Callable[[IngressController], None], ...] = (
    name_fits,
    replicas_are_a_number_of_pods,
    ports_differ,
    selectors_are_valid,
    log_socket_is_known,
    destination_is_complete,
)


def selector(field: str, value: LabelSelectorPart | None) -> LabelSelector | None:
    """The selector in a field; raises `InvalidSpec` if it is not valid."""
    return selector_in(field, None if value is None else msgspec.to_builtins(value))


def variables_fit(variables: Mapping[str, str]) -> Admission:
    """Refuses what would give the router a variable with which it cannot start."""
    for name, value in variables.items():
        length = len(f"{name}={value}".encode())
        if length > LONGEST_VARIABLE:
            words = (
                f"{length} bytes as the router's variable {name}: use at most {LONGEST_VARIABLE}"
            )
            return Admission(False, "InvalidSpec", f"{_FIELDS.get(name, 'spec')}: {words}")
    return ADMITTED


def name_is_free(controller: IngressController, rivals: Iterable[IngressController]) -> Admission:
    """Refuses while an older IngressController has a Service of the same name; see `names.rivals`.

    Otherwise each of the two would write the Service of the other over, for ever.
    """
    for rival in rivals:
        if _age(rival) < _age(controller):
            words = f"IngressController {rival.metadata.name} has Services of the same names"
            message = f"metadata.name: {controller.metadata.name!r}: {words}: choose another name"
            return Admission(False, "NameTaken", message)
    return ADMITTED


def _age(controller: IngressController) -> tuple[datetime, str]:
    """The older one is less. One that was not created yet is the youngest."""
    created = controller.metadata.creation_timestamp
    return created or datetime.max.replace(tzinfo=UTC), controller.metadata.name


def taken(found: Iterable[Object], field_manager: str) -> Admission:
    """Refuses while an object that the operator did not make has the name of one of its own."""
    for obj in found:
        if not is_made_by(obj, field_manager):
            remedy = "rename one of the two, or remove the object"
            message = f"metadata.name: {obj['kind']} {key_of(obj)} is not the operator's: {remedy}"
            return Admission(False, "NameTaken", message)
    return ADMITTED


def is_made_by(obj: Object, field_manager: str) -> bool:
    """Whether a field manager has written to the object: labels alone can be anybody's."""
    entries = obj["metadata"].get("managedFields") or ()
    return any(entry.get("manager") == field_manager for entry in entries)
