"""Which proxies can be used, and which servers are asked without one, by NO_PROXY. Pure."""

import ipaddress
import re
from urllib.parse import urlsplit

_ENTRY = re.compile(r"(?P<host>\[[^]]*\]|[^:]*|.*:.*:.*?)(:(?P<port>\d+))?")


def is_exempt(url: str, no_proxy: str) -> bool:
    """Whether an entry of NO_PROXY, a list with commas, covers the server of an address."""
    parts = urlsplit(url)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    entries = (entry.strip() for entry in no_proxy.split(","))
    return any(_covers(parts.hostname or "", port, entry) for entry in entries if entry)


def _covers(host: str, port: int, entry: str) -> bool:
    """Whether one entry of NO_PROXY covers the server.

    An entry is a name, a domain (`.example.com`, `*.example.com`), an address or a network. It may
    have a port, and an IPv6 address may have brackets.
    """
    if entry == "*":
        return True
    bare = _address(entry) is None and _ENTRY.fullmatch(entry)
    name, only = (bare["host"], bare["port"]) if bare else (entry, None)
    if only and int(only) != port:
        return False
    name = name.strip("[]").lower().removeprefix("*").lstrip(".")
    if address := _address(host):
        try:
            return address in ipaddress.ip_network(name, strict=False)
        except ValueError:
            return False
    return bool(name) and (host == name or host.endswith(f".{name}"))


def is_loopback(host: str) -> bool:
    """Whether the host is this machine."""
    address = _address(host)
    return address.is_loopback if address else host == "localhost" or host.endswith(".localhost")


def unusable_proxy(proxy: str) -> str:
    """Why a proxy cannot be used, without its password; empty if it can."""
    try:
        parts = urlsplit(proxy)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in ("http", "https"):
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        return f"{shown!r}: only http and https proxies are supported"
    return "" if host else "has no host"


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
