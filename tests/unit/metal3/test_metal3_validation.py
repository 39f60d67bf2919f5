"""The rules for a Provisioning: each with what it accepts and what it refuses."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.api.metal3_v1alpha1 import ProvisioningSpec
from quarterdeck.metal3.containers import desired_containers, desired_init_containers
from quarterdeck.metal3.images import NAMES
from quarterdeck.metal3.validation import InvalidValue, faults

CHECKSUM = "0123456789abcdefABCDEF0123456789" * 2
URL = f"http://172.22.0.1/images/os.qcow2.gz?sha256={CHECKSUM}"
MANAGED = ProvisioningSpec(
    provisioning_network="Managed",
    provisioning_interface="eth0",
    provisioning_ip="172.30.20.3",
    provisioning_network_cidr="172.30.20.0/24",
    provisioning_dhcp_range="172.30.20.11,172.30.20.101",
    provisioning_os_download_url=URL,
)
IPV6 = msgspec.structs.replace(
    MANAGED,
    provisioning_ip="fd2e:6f44:5dd8:b856::2",
    provisioning_network_cidr="fd2e:6f44:5dd8:b856::/80",
    provisioning_dhcp_range="fd2e:6f44:5dd8:b856::3,fd2e:6f44:5dd8:b856::ff",
)
DISABLED = ProvisioningSpec(provisioning_network="Disabled", provisioning_os_download_url=URL)


def changed(spec: ProvisioningSpec, **fields: Any) -> ProvisioningSpec:
    return msgspec.structs.replace(spec, **fields)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(MANAGED, id="managed"),
        pytest.param(changed(MANAGED, provisioning_network=None), id="managed by default"),
        pytest.param(IPV6, id="managed, IPv6"),
        pytest.param(
            changed(IPV6, provisioning_network_cidr="fd2e:6f44:5dd8:b856::/64"), id="IPv6 with /64"
        ),
        pytest.param(
            changed(
                IPV6,
                provisioning_network="Unmanaged",
                provisioning_network_cidr="fd2e:6f44:5dd8::/48",
            ),
            id="a larger IPv6 network if unmanaged",
        ),
        pytest.param(
            changed(MANAGED, provisioning_dhcp_range=" 172.30.20.11 , 172.30.20.101 "),
            id="blanks in the range",
        ),
        pytest.param(
            changed(MANAGED, provisioning_network="Unmanaged", provisioning_dhcp_range=None),
            id="unmanaged, without a range",
        ),
        pytest.param(
            changed(
                MANAGED,
                provisioning_network=None,
                provisioning_dhcp_external=True,
                provisioning_dhcp_range=None,
            ),
            id="unmanaged by the older field",
        ),
        pytest.param(
            changed(MANAGED, provisioning_network="Unmanaged", provisioning_dhcp_range="nonsense"),
            id="unmanaged, with a range that is not used",
        ),
        pytest.param(DISABLED, id="disabled, without a network"),
        pytest.param(
            changed(
                MANAGED,
                provisioning_network="Disabled",
                provisioning_dhcp_range=None,
                provisioning_interface=None,
            ),
            id="disabled, with an address",
        ),
        pytest.param(
            changed(MANAGED, provisioning_os_download_url=URL.replace(".gz", ".xz")), id="xz"
        ),
    ],
)
def test_a_good_configuration_has_no_faults(spec: ProvisioningSpec) -> None:
    assert faults(spec) == []


@pytest.mark.parametrize(
    ("fields", "field", "remedy"),
    [
        pytest.param({"provisioning_network": "Odd"}, "provisioningNetwork", "choose", id="mode"),
        pytest.param(
            {"provisioning_os_download_url": None}, "provisioningOSDownloadURL", "name", id="no URL"
        ),
        pytest.param(
            {"provisioning_os_download_url": URL.replace("http", "ftp")},
            "provisioningOSDownloadURL",
            "http or https",
            id="another scheme",
        ),
        pytest.param(
            {"provisioning_os_download_url": URL.replace(".qcow2.gz", ".iso")},
            "provisioningOSDownloadURL",
            ".qcow2.gz or .qcow2.xz",
            id="another file",
        ),
        pytest.param(
            {"provisioning_os_download_url": URL.partition("?")[0]},
            "provisioningOSDownloadURL",
            "sha256",
            id="no checksum",
        ),
        pytest.param(
            {"provisioning_os_download_url": URL[:-1]},
            "provisioningOSDownloadURL",
            "64 hexadecimal digits",
            id="a short checksum",
        ),
        pytest.param(
            {"provisioning_os_download_url": f"{URL[:-1]}g"},
            "provisioningOSDownloadURL",
            "64 hexadecimal digits",
            id="no hexadecimal digits",
        ),
        pytest.param(
            {"provisioning_os_download_url": f"{URL}\nX=1"},
            "provisioningOSDownloadURL",
            "special",
            id="a line break in the URL",
        ),
        pytest.param(
            {"provisioning_interface": None}, "provisioningInterface", "name", id="no interface"
        ),
        pytest.param(
            {"provisioning_interface": "eth0; reboot"},
            "provisioningInterface",
            "ip link",
            id="no name of an interface",
        ),
        pytest.param({"provisioning_ip": None}, "provisioningIP", "write an", id="no address"),
        pytest.param({"provisioning_ip": "172.30.20.500"}, "provisioningIP", "IPv4", id="not one"),
        pytest.param(
            {"provisioning_ip": "172.30.21.3"}, "provisioningIP", "172.30.20.0/24", id="outside"
        ),
        pytest.param(
            {"provisioning_ip": "172.30.20.50"}, "provisioningIP", "outside of", id="in the range"
        ),
        pytest.param(
            {"provisioning_ip": "172.30.20.11"}, "provisioningIP", "outside of", id="its first"
        ),
        pytest.param(
            {"provisioning_ip": "172.30.20.101"}, "provisioningIP", "outside of", id="its last"
        ),
        pytest.param(
            {"provisioning_ip": "fd2e::1"}, "provisioningIP", "pick", id="of another family"
        ),
        pytest.param(
            {"provisioning_network_cidr": None}, "provisioningNetworkCIDR", "such as", id="no CIDR"
        ),
        pytest.param(
            {"provisioning_network_cidr": "172.30.20.0"},
            "provisioningNetworkCIDR",
            "such as",
            id="no prefix",
        ),
        pytest.param(
            {"provisioning_dhcp_range": None}, "provisioningDHCPRange", "first", id="no range"
        ),
        pytest.param(
            {"provisioning_dhcp_range": "172.30.20.11"},
            "provisioningDHCPRange",
            "comma",
            id="half a range",
        ),
        pytest.param(
            {"provisioning_dhcp_range": "172.30.20.11,xyz"},
            "provisioningDHCPRange",
            "first",
            id="an end that is none",
        ),
        pytest.param(
            {"provisioning_dhcp_range": "172.30.30.11,172.30.30.100"},
            "provisioningDHCPRange",
            "172.30.20.0/24",
            id="a range outside",
        ),
        pytest.param(
            {"provisioning_dhcp_range": "172.30.20.101,172.30.20.11"},
            "provisioningDHCPRange",
            "lower",
            id="a range backwards",
        ),
        pytest.param(
            {"provisioning_dhcp_range": "172.30.20.0,172.30.20.2"},
            "provisioningDHCPRange",
            "hosts in",
            id="a range with the network's own address",
        ),
        pytest.param(
            {"provisioning_dhcp_range": "172.30.20.200,172.30.20.255"},
            "provisioningDHCPRange",
            "hosts in",
            id="a range with the broadcast address",
        ),
    ],
)
def test_a_bad_value_is_named_with_its_field_and_a_remedy(
    fields: dict[str, Any], field: str, remedy: str
) -> None:
    found = faults(changed(MANAGED, **fields))
    assert [one.field for one in found] == [field]
    assert remedy in found[0].remedy
    assert str(found[0]).startswith(f"spec.{field}: ")


def test_a_managed_ipv6_network_is_no_larger_than_64() -> None:
    (found,) = faults(changed(IPV6, provisioning_network_cidr="fd2e:6f44:5dd8::/48"))
    assert (found.field, found.value) == ("provisioningNetworkCIDR", "fd2e:6f44:5dd8::/48")


def test_all_faults_are_reported_at_once() -> None:
    found = faults(ProvisioningSpec())
    assert [one.field for one in found] == [
        "provisioningOSDownloadURL",
        "provisioningInterface",
        "provisioningNetworkCIDR",
        "provisioningIP",
        "provisioningDHCPRange",
    ]


def test_a_long_value_is_cut() -> None:
    assert len(str(InvalidValue("f", "x" * 10_000, "r"))) < 200


texts = st.none() | st.sampled_from(["", "172.30.20.3", "172.30.20.0/24", "fd00::/64"]) | st.text()


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        pytest.param(URL.replace("os.", "$(HOSTNAME)."), "percent-encode", id="a variable"),
        pytest.param(URL.replace("os.", "`reboot`."), "percent-encode", id="a command"),
        pytest.param(URL.replace("os.", "a;b."), "percent-encode", id="two commands"),
        pytest.param(URL.replace("os.", "a'b."), "percent-encode", id="a quote"),
        pytest.param(URL.replace("os.", "a\\b."), "percent-encode", id="a backslash"),
        pytest.param(f"{URL}#x", "fragment", id="a fragment after the checksum"),
        pytest.param(URL.replace("172.22.0.1", "h" * 2048), "percent-encode", id="too long"),
        pytest.param(URL.replace("172.22.0.1", "h:port"), "write a URL", id="no number of a port"),
        pytest.param(URL.replace("172.22.0.1", "h:99999"), "write a URL", id="no port"),
        pytest.param(
            URL.replace("sha256=0", "sha256=%30"), "64 hexadecimal", id="an encoded checksum"
        ),
        pytest.param(f"{URL}&sha256={CHECKSUM}", "64 hexadecimal", id="two checksums"),
        pytest.param(URL.replace("172", "me:secret@172"), "leave user", id="a password"),
        pytest.param(URL.replace("172", "me:secret@h:x/172"), "write a URL", id="and no port"),
        pytest.param(URL.replace("172", "@172"), "leave user", id="an empty user"),
    ],
)
def test_a_url_that_another_program_could_read_differently_is_refused(
    url: str, remedy: str
) -> None:
    (found,) = faults(changed(MANAGED, provisioning_os_download_url=url))
    assert found.field == "provisioningOSDownloadURL"
    assert remedy in found.remedy
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://me:secret@h/os", "http://…@h/os"),
        ("http://me:sec/secret@h/os", "http://…@h/os"),
        ("http://me:sec@secret@h/os", "http://…@h/os"),
        ("http://me:secret?secret@h/os", "http://…@…"),
        ("http://me:secret#secret@h/os", "http://…@…"),
        ("me:secret@h/os", "…@h/os"),
        ("http://h/os?token=secret", "http://h/os?token=…"),
        ("http://h/os?token=a@secret&x=secret", "http://…@…"),
        ("http://h/os?secret&sha256=12ab", "http://h/os?…&sha256=12ab"),
        ("http://h/os?sha256=12;token=secret", "http://h/os?sha256=…"),
        ("http://h/os?sha256=12&a=secret=secret", "http://h/os?sha256=12&a=…"),
        ("http://h/os?sha256=12#secret", "http://h/os?sha256=12#…"),
        ("http://h/os#secret", "http://h/os#…"),
    ],
)
def test_the_secrets_in_a_url_are_not_shown(url: str, shown: str) -> None:
    """The conditions and events have more readers than the Provisioning."""
    (found,) = faults(changed(MANAGED, provisioning_os_download_url=url))
    assert found.value == shown


@pytest.mark.parametrize(
    ("ip", "cidr"),
    [
        pytest.param("172.30.20.0", "172.30.20.0/24", id="the network's own"),
        pytest.param("172.30.20.255", "172.30.20.0/24", id="the broadcast"),
        pytest.param("fd2e::", "fd2e::/64", id="the routers' of an IPv6 network"),
        pytest.param("ff02::1", "ff02::/64", id="multicast"),
        pytest.param("127.0.0.1", "127.0.0.0/8", id="loopback"),
    ],
)
def test_an_address_that_no_interface_can_have_is_refused(ip: str, cidr: str) -> None:
    unmanaged = changed(MANAGED, provisioning_network="Unmanaged")
    (found,) = faults(changed(unmanaged, provisioning_ip=ip, provisioning_network_cidr=cidr))
    assert (found.field, found.value) == ("provisioningIP", ip)


@pytest.mark.parametrize(
    "cidr", ["172.30.20.0/255.255.255.0", "172.30.20.0/0.0.0.255", "fd2e::%eth0/64", "fd2e::/"]
)
def test_a_network_is_written_with_the_length_of_its_prefix(cidr: str) -> None:
    spec = changed(MANAGED, provisioning_network="Unmanaged", provisioning_network_cidr=cidr)
    assert [one.field for one in faults(spec)] == ["provisioningNetworkCIDR"]


def test_bits_below_the_prefix_do_not_count() -> None:
    assert faults(changed(MANAGED, provisioning_network_cidr="172.30.20.77/24")) == []


@given(
    network=texts,
    interface=texts,
    ip=texts,
    cidr=texts,
    dhcp=texts
    | st.tuples(st.ip_addresses(), st.ip_addresses()).map(lambda two: f"{two[0]},{two[1]}"),
    url=texts,
)
def test_any_text_is_judged_and_what_is_accepted_is_one_printable_word(
    network: str | None,
    interface: str | None,
    ip: str | None,
    cidr: str | None,
    dhcp: str | None,
    url: str | None,
) -> None:
    """Nothing crashes, and nothing with a blank or a line break reaches an environment."""
    spec = ProvisioningSpec(
        provisioning_network=network,
        provisioning_interface=interface,
        provisioning_ip=ip,
        provisioning_network_cidr=cidr,
        provisioning_dhcp_range=dhcp,
        provisioning_os_download_url=url or URL,
    )
    if faults(spec):
        return
    for container in (*desired_containers(spec, NAMES), *desired_init_containers(spec, NAMES)):
        for variable in container["env"]:
            value = variable.get("value", "")
            assert value.isascii()
            assert value.isprintable()
            assert " " not in value
