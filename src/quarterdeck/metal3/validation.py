"""The rules for the configuration in a Provisioning, as a list. Pure.

Each rule returns the first thing that it objects to, with field, value and remedy. The values end
up in the environment of programs that run as root on the control plane's nodes, so a rule accepts
only what it can read to the end.
"""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from quarterdeck.api.metal3_v1alpha1 import ProvisioningNetwork, ProvisioningSpec
from quarterdeck.metal3.network import (
    Address,
    Network,
    address_in,
    has_network,
    network_in,
    range_in,
)

INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,14}")
"""A name of a network interface in Linux: at most 15 characters; these are the usual ones."""
URL = re.compile(r"[A-Za-z0-9._~:/?@%&=+,\[\]-]{0,2048}")
"""What a URL may have: nothing that a shell or Kubernetes, which replaces `$(NAME)`, could read."""
USER = re.compile("//[^/?#]*@")
SCHEME = re.compile("[A-Za-z]{1,10}://")
DIGITS = re.compile("[0-9a-zA-Z%]*")
CHECKSUM = re.compile("sha256=[0-9a-fA-F]{64}")
COMPRESSED_IMAGES = (".qcow2.gz", ".qcow2.xz")
LONGEST_IPV6_NETWORK = 64
SHOWN = 80
"""The most characters of a value in a message."""


class InvalidValue(msgspec.Struct, frozen=True):
    """A value that metal3 cannot be configured with."""

    field: str
    value: str
    remedy: str

    def __str__(self) -> str:
        value = self.value if len(self.value) <= SHOWN else f"{self.value[:SHOWN]}…"
        return f"spec.{self.field}: {value!r}: {self.remedy}"


def faults(spec: ProvisioningSpec) -> list[InvalidValue]:
    """What is wrong with the configuration; empty if metal3 can run with it."""
    rules = (*RULES, *(NETWORK_RULES if has_network(spec) else ()))
    return [fault for rule in rules if (fault := rule(spec))]


def network_is_known(spec: ProvisioningSpec) -> InvalidValue | None:
    """The mode is one of those that we know; a newer CRD may allow others."""
    if spec.network in list(ProvisioningNetwork):
        return None
    known = ", ".join(ProvisioningNetwork)
    return InvalidValue("provisioningNetwork", spec.network, f"choose one of {known}")


def url_names_a_checked_image(spec: ProvisioningSpec) -> InvalidValue | None:
    """The image comes by HTTP, is compressed, and has a checksum."""
    field, url = "provisioningOSDownloadURL", spec.provisioning_os_download_url or ""
    if not url:
        return InvalidValue(field, url, "name the image of the operating system")
    shown = _without_secrets(url)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return InvalidValue(field, shown, "write a URL")
    if USER.search(url):
        return InvalidValue(field, shown, "leave user and password out: Deployments show the URL")
    if not URL.fullmatch(url):
        remedy = "write a URL without a fragment; percent-encode blanks and special characters"
        return InvalidValue(field, shown, remedy)
    if parts.scheme not in ("http", "https") or not host:
        return InvalidValue(field, shown, "use http or https, with a host")
    if not parts.path.endswith(COMPRESSED_IMAGES):
        return InvalidValue(
            field, shown, f"name a file that ends with {' or '.join(COMPRESSED_IMAGES)}"
        )
    # As it is written: the program that downloads the image does not decode it.
    checksums = [one for one in parts.query.split("&") if one.startswith("sha256=")]
    if len(checksums) != 1 or not CHECKSUM.fullmatch(checksums[0]):
        return InvalidValue(
            field, shown, "add ?sha256= with the 64 hexadecimal digits of its checksum"
        )
    return None


def _without_secrets(url: str) -> str:
    """The URL without user, password, fragment, and the values of its query, but for the checksum.

    A message has more readers than the Provisioning. A password may have any character, also one
    that ends the host's part of a URL.
    """
    scheme = SCHEME.match(url)
    begin = scheme[0] if scheme else ""
    rest = url.removeprefix(begin)
    user, at, after = rest.rpartition("@")
    if at:
        begin += "…@"
        # It is part of a password, or of a query.
        rest = "…" if "?" in user or "#" in user else after
    rest, fragment, _ = rest.partition("#")
    path, mark, query = rest.partition("?")
    shown = "&".join(map(_without_value, query.split("&")))
    return f"{begin}{path}{mark}{shown if mark else ''}{'#…' if fragment else ''}"


def _without_value(parameter: str) -> str:
    name, equals, value = parameter.partition("=")
    if not equals:
        return "…" if name else ""
    return parameter if name == "sha256" and DIGITS.fullmatch(value) else f"{name}=…"


def interface_is_named(spec: ProvisioningSpec) -> InvalidValue | None:
    """There is an interface, unless the network is disabled; and it is a possible name."""
    name = spec.provisioning_interface or ""
    if not name and spec.network == ProvisioningNetwork.DISABLED:
        return None
    if INTERFACE.fullmatch(name):
        return None
    remedy = "name the network interface, as `ip link` shows it"
    return InvalidValue("provisioningInterface", name, remedy)


def cidr_parses(spec: ProvisioningSpec) -> InvalidValue | None:
    """The network is one."""
    value = spec.provisioning_network_cidr or ""
    if network_in(value) is not None:
        return None
    return InvalidValue("provisioningNetworkCIDR", value, "write a network such as 172.30.20.0/24")


def managed_ipv6_network_is_small_enough(spec: ProvisioningSpec) -> InvalidValue | None:
    """The prefix of an IPv6 network in which metal3 serves DHCP is no shorter than /64."""
    value = spec.provisioning_network_cidr or ""
    network = network_in(value)
    if spec.network != ProvisioningNetwork.MANAGED or network is None or network.version == 4:
        return None
    if network.prefixlen >= LONGEST_IPV6_NETWORK:
        return None
    remedy = "use a prefix of /64 or longer: metal3's DHCP server serves no larger IPv6 network"
    return InvalidValue("provisioningNetworkCIDR", value, remedy)


def ip_parses(spec: ProvisioningSpec) -> InvalidValue | None:
    """The address is one."""
    value = spec.provisioning_ip or ""
    if address_in(value) is not None:
        return None
    return InvalidValue("provisioningIP", value, "write an IPv4 or IPv6 address")


def ip_inside_cidr(spec: ProvisioningSpec) -> InvalidValue | None:
    """The address is in the network."""
    value = spec.provisioning_ip or ""
    address, network = address_in(value), network_in(spec.provisioning_network_cidr or "")
    if address is None or network is None or address in network:
        return None
    return InvalidValue("provisioningIP", value, f"pick an address in {network}")


def ip_is_that_of_a_host(spec: ProvisioningSpec) -> InvalidValue | None:
    """The address can be given to an interface: it is not the network's own, or its broadcast."""
    value = spec.provisioning_ip or ""
    address, network = address_in(value), network_in(spec.provisioning_network_cidr or "")
    if address is None or network is None or address not in network:
        return None
    special = address.is_multicast or address.is_loopback or address.is_unspecified
    if address not in _ends(network) and not special:
        return None
    return InvalidValue("provisioningIP", value, f"pick the address of a host in {network}")


def _ends(network: Network) -> list[Address]:
    """The addresses that no host has: the network's own and, in IPv4, its broadcast."""
    if network.num_addresses <= 2:
        return []
    if network.version == 4:
        return [network.network_address, network.broadcast_address]
    return [network.network_address]


def ip_outside_dhcp_range(spec: ProvisioningSpec) -> InvalidValue | None:
    """No machine gets metal3's own address."""
    value = spec.provisioning_ip or ""
    address, found = address_in(value), range_in(spec.provisioning_dhcp_range or "")
    if spec.network != ProvisioningNetwork.MANAGED or address is None or found is None:
        return None
    first, last = found
    if not address.version == first.version == last.version:
        return None
    if not int(first) <= int(address) <= int(last):
        return None
    return InvalidValue("provisioningIP", value, f"pick an address outside of {first} to {last}")


def dhcp_range_is_in_the_network(spec: ProvisioningSpec) -> InvalidValue | None:
    """If metal3 serves DHCP, there is a range, its start is not after its end, and it is inside."""
    if spec.network != ProvisioningNetwork.MANAGED:
        return None
    field, value = "provisioningDHCPRange", spec.provisioning_dhcp_range or ""
    found, network = range_in(value), network_in(spec.provisioning_network_cidr or "")
    if found is None:
        return InvalidValue(
            field, value, "write the first and the last address, with a comma between"
        )
    if network is not None and not all(address in network for address in found):
        return InvalidValue(field, value, f"pick addresses in {network}")
    if found[0].version != found[1].version or int(found[0]) > int(found[1]):
        return InvalidValue(field, value, "write the lower address first")
    if network is not None and any(address in _ends(network) for address in found):
        return InvalidValue(field, value, f"pick the addresses of hosts in {network}")
    return None


Rule = Callable[[ProvisioningSpec], InvalidValue | None]

RULES: tuple[Rule, ...] = (network_is_known, url_names_a_checked_image, interface_is_named)

NETWORK_RULES: tuple[Rule, ...] = (
    cidr_parses,
    managed_ipv6_network_is_small_enough,
    ip_parses,
    ip_inside_cidr,
    ip_is_that_of_a_host,
    ip_outside_dhcp_range,
    dhcp_range_is_in_the_network,
)
"""They do not count if the network is Disabled and neither address nor network is set."""
