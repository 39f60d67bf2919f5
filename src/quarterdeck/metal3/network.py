"""The provisioning network of a valid configuration, in the form that metal3's programs read. Pure.

`validation` refuses what these functions cannot read.
"""

import ipaddress
from typing import TypeAlias

from quarterdeck.api.metal3_v1alpha1 import ProvisioningNetwork, ProvisioningSpec

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


def address_in(text: str) -> Address | None:
    """The address that the text is; None if it is none, or has a zone."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    # A zone is the name of an interface, and any text.
    return None if "%" in text else address


def network_in(text: str) -> Network | None:
    """The network that the text is; None if it is none. Bits below the prefix are ignored."""
    address, _, prefix = text.partition("/")
    # Python also reads a mask, and a zone.
    if address_in(address) is None or not prefix.isdecimal():
        return None
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def range_in(text: str) -> tuple[Address, Address] | None:
    """The first and the last address of `start,end`, with blanks tolerated; None if it is none."""
    start, comma, end = text.partition(",")
    first, last = address_in(start.strip()), address_in(end.strip())
    return (first, last) if comma and first is not None and last is not None else None


def has_network(spec: ProvisioningSpec) -> bool:
    """Whether metal3 has an address of its own; a Disabled network may do without."""
    disabled = spec.network == ProvisioningNetwork.DISABLED
    return not disabled or bool(spec.provisioning_ip or spec.provisioning_network_cidr)


def provisioning_ip(spec: ProvisioningSpec) -> str:
    """`ip/prefix`; empty without an address."""
    network = network_in(spec.provisioning_network_cidr or "")
    if not has_network(spec) or network is None:
        return ""
    return f"{address_in(spec.provisioning_ip or '')}/{network.prefixlen}"


def dhcp_range(spec: ProvisioningSpec) -> str:
    """`start,end,prefix`; empty unless metal3 serves DHCP."""
    network = network_in(spec.provisioning_network_cidr or "")
    found = range_in(spec.provisioning_dhcp_range or "")
    if spec.network != ProvisioningNetwork.MANAGED or network is None or found is None:
        return ""
    return f"{found[0]},{found[1]},{network.prefixlen}"


def ip_options(spec: ProvisioningSpec) -> str:
    """How a machine gets its address at boot, by the family of the network; IPv4 without one."""
    network = network_in(spec.provisioning_network_cidr or "")
    return "ip=dhcp6" if network is not None and network.version == 6 else "ip=dhcp"
