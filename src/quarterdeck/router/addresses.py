"""Which addresses a backend may have. Pure.

With the host's network the router can reach what listens only there: etcd, the kubelet, a cloud's
metadata service. A user who may create a Service must not reach them through the router.
"""

import ipaddress
from collections.abc import Collection

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    )
)
"""The metadata services of clouds whose addresses are not link-local."""
_THIS_NETWORK = ipaddress.IPv4Network("0.0.0.0/8")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def parsed(text: str) -> Address | None:
    """The address, an IPv4 address that is written as IPv6 as IPv4; None if it is none."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or _compatible(address)
        if address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return inner or address
    return address


def refusal(text: str, nodes: Collection[str], *, loopback: bool) -> str:
    """Why a backend may not have this address; empty if it may."""
    address = parsed(text)
    if address is None:
        return "not an IP address"
    if address.is_loopback:
        return "" if loopback else "a loopback address"
    for forbidden, what in (
        (address.is_link_local, "a link-local address"),
        (address in _METADATA, "the address of a cloud's metadata service"),
        (address.is_unspecified or address in _THIS_NETWORK, "the unspecified address"),
        (address.is_multicast, "a multicast address"),
        (address.is_reserved, "a reserved address"),
        (address in {parsed(node) for node in nodes}, "the address of a node"),
    ):
        if forbidden:
            return what
    return ""


def _compatible(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address in the obsolete form `::1.2.3.4`."""
    number = int(address)
    return ipaddress.IPv4Address(number) if 1 < number < 1 << 32 else None
