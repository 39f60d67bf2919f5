"""What the router's environment says, read once. Pure."""

import ipaddress
import re
from collections.abc import Mapping

import msgspec

from quarterdeck.haproxy.access_log import AccessLog, access_log
from quarterdeck.haproxy.errors import InvalidVariableError
from quarterdeck.kube.selector import EVERYTHING, LabelSelector, parse_selector

DEFAULT_NAME = "default"
"""The router that serves Ingress objects without a class."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How this router routes and logs."""

    name: str = DEFAULT_NAME
    """The name of the IngressController."""
    ingress_class: str = f"quarterdeck-{DEFAULT_NAME}"
    http_port: int = 8080
    https_port: int = 8443
    stats_port: int = 1936
    """The port of /healthz and /metrics."""
    bind_address: str = ""
    """Listen only on this address; empty for all."""
    reload_interval: float = 5.0
    """Seconds between two reloads of HAProxy, at least."""
    stop_delay: float = 0.0
    """Seconds in which connections are still taken after the router was told to stop."""
    namespaces: LabelSelector = EVERYTHING
    ingresses: LabelSelector = EVERYTHING
    access_log: AccessLog | None = None
    external_names: bool = False
    """Route to Services of type ExternalName."""
    loopback_backends: bool = False
    """Let an ExternalName resolve to a loopback address."""
    pod_name: str = ""
    pod_namespace: str = ""

    def bind(self, port: int, *, ipv6: bool = False) -> str:
        """The addresses of a listener, as in haproxy.cfg; IPv6 too, if the machine has it.

        A listener for both would write IPv4 addresses as IPv6 into access lines.
        """
        if ":" in self.bind_address:
            return f"[{self.bind_address}]:{port}"
        if self.bind_address:
            return f"{self.bind_address}:{port}"
        return f"*:{port},:::{port} v6only" if ipv6 else f"*:{port}"


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings; raises `InvalidVariableError` with the variable, its value and the remedy."""
    name = environment.get("ROUTER_SERVICE_NAME") or DEFAULT_NAME
    return Settings(
        name=name,
        ingress_class=environment.get("ROUTER_INGRESS_CLASS") or f"quarterdeck-{name}",
        http_port=_number(environment, "ROUTER_SERVICE_HTTP_PORT", 8080, 1, 65535),
        https_port=_number(environment, "ROUTER_SERVICE_HTTPS_PORT", 8443, 1, 65535),
        stats_port=_number(environment, "STATS_PORT", 1936, 0, 65535),
        bind_address=_bind_address(environment),
        reload_interval=_number(environment, "RELOAD_INTERVAL", 5, 1, 120),
        stop_delay=_number(environment, "ROUTER_GRACEFUL_SHUTDOWN_DELAY", 0, 0, 999_999),
        namespaces=_selector(environment, "NAMESPACE_LABELS"),
        ingresses=_selector(environment, "ROUTE_LABELS"),
        access_log=access_log(environment),
        external_names=environment.get("ROUTER_ALLOW_EXTERNAL_NAMES") == "true",
        loopback_backends=environment.get("ROUTER_ALLOW_LOOPBACK_BACKENDS") == "true",
        pod_name=environment.get("POD_NAME", ""),
        pod_namespace=environment.get("POD_NAMESPACE", ""),
    )


def _bind_address(environment: Mapping[str, str]) -> str:
    """The pod's address if it is a loopback address: then nobody else is meant to connect."""
    value = environment.get("POD_IP") or ""
    try:
        return value if ipaddress.ip_address(value).is_loopback else ""
    except ValueError:
        return ""


_TIMES = {"RELOAD_INTERVAL", "ROUTER_GRACEFUL_SHUTDOWN_DELAY"}


def _number(environment: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    value = environment.get(name)
    if not value:
        return default
    # Go's form of a duration is common for times.
    digits = value.removesuffix("s") if name in _TIMES else value
    if not re.fullmatch("[0-9]{1,6}", digits) or not low <= int(digits) <= high:
        raise InvalidVariableError(name, value, f"use a number from {low} to {high}")
    return int(digits)


def _selector(environment: Mapping[str, str], name: str) -> LabelSelector:
    value = environment.get(name, "")
    try:
        return parse_selector(value)
    except ValueError as error:
        raise InvalidVariableError(name, value, str(error)) from None
