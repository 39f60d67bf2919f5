"""The platforms of a cluster.

Only bare metal has types, because one of our operators needs them. The details of all others are
opaque.
"""

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from quarterdeck.api.meta import Part
from quarterdeck.api.schema import OPAQUE, ValidationRule, default, items, one_of, rules, text


class PlatformType(StrEnum):
    """The platforms; empty if it is not known yet."""

    UNSET = ""
    AWS = "AWS"
    AZURE = "Azure"
    BARE_METAL = "BareMetal"
    GCP = "GCP"
    LIBVIRT = "Libvirt"
    OPENSTACK = "OpenStack"
    NONE = "None"
    VSPHERE = "VSphere"
    OVIRT = "oVirt"
    IBM_CLOUD = "IBMCloud"
    KUBEVIRT = "KubeVirt"
    EQUINIX_METAL = "EquinixMetal"
    POWER_VS = "PowerVS"
    ALIBABA_CLOUD = "AlibabaCloud"
    NUTANIX = "Nutanix"
    EXTERNAL = "External"


class LoadBalancerType(StrEnum):
    """Who manages the load balancer of the API server and of ingress."""

    OPENSHIFT_MANAGED = "OpenShiftManagedDefault"
    USER_MANAGED = "UserManaged"


ONE_PER_FAMILY = ValidationRule(
    "size(self) < 2 || !isIP(self[0]) || !isIP(self[1])"
    " || ip(self[0]).family() != ip(self[1]).family()",
    "at most one IPv4 address and one IPv6 address",
)
IS_IP = ValidationRule("isIP(self)", "value must be a valid IP address")
IS_CIDR = ValidationRule("isCIDR(self)", "value must be a valid CIDR network address")
NO_DUPLICATES = ValidationRule("self.all(x, self.exists_one(y, x == y))", "networks must be unique")

IPAddress = Annotated[str, text(min_length=1, max_length=39), rules(IS_IP)]
Network = Annotated[str, text(min_length=1, max_length=43), rules(IS_CIDR)]
WantedIPs = Annotated[tuple[IPAddress, ...], items(max_items=2), rules(ONE_PER_FAMILY)]
Networks = Annotated[tuple[Network, ...], items(max_items=32), rules(NO_DUPLICATES)]

KEEPS_API_SERVER_IPS = ValidationRule(
    "!has(oldSelf.apiServerInternalIPs) || has(self.apiServerInternalIPs)",
    "apiServerInternalIPs cannot be removed once set",
    ".apiServerInternalIPs",
)
KEEPS_INGRESS_IPS = ValidationRule(
    "!has(oldSelf.ingressIPs) || has(self.ingressIPs)",
    "ingressIPs cannot be removed once set",
    ".ingressIPs",
)

# Objects that are older than the rule may violate it: they can stay, but not be created.
ONE_PER_FAMILY_FROM_NOW_ON = ValidationRule(
    f"self == oldSelf || {ONE_PER_FAMILY.rule}", ONE_PER_FAMILY.message
)
FoundIPs = Annotated[tuple[str, ...], items(max_items=2), rules(ONE_PER_FAMILY_FROM_NOW_ON)]

Details = Annotated[dict[str, Any] | None, OPAQUE]


class BareMetalSpec(Part):
    """The desired configuration of a bare metal platform."""

    api_server_internal_ips: WantedIPs = msgspec.field(default=(), name="apiServerInternalIPs")
    """Addresses of the API server for nodes, at most one of each family. They cannot be removed
    once set."""

    ingress_ips: WantedIPs = msgspec.field(default=(), name="ingressIPs")
    """Addresses of ingress, at most one of each family. They cannot be removed once set."""

    machine_networks: Networks = ()
    """Networks that the machines are in, each as a CIDR."""


class BareMetalLoadBalancer(Part):
    """The load balancer of a bare metal platform."""

    type: Annotated[
        str | None,
        one_of(LoadBalancerType),
        default("OpenShiftManagedDefault"),
        rules(ValidationRule("oldSelf == '' || self == oldSelf", "type is immutable once set")),
    ] = None
    """OpenShiftManagedDefault: the load balancer runs on the cluster's nodes. UserManaged: a user
    manages it. It cannot be changed once set."""


class BareMetalStatus(Part):
    """The observed bare metal platform."""

    api_server_internal_ip: str | None = msgspec.field(default=None, name="apiServerInternalIP")
    """The first of `apiServerInternalIPs`, for older clients."""

    api_server_internal_ips: FoundIPs = msgspec.field(default=(), name="apiServerInternalIPs")
    """Addresses of the API server for nodes."""

    ingress_ip: str | None = msgspec.field(default=None, name="ingressIP")
    """The first of `ingressIPs`, for older clients."""

    ingress_ips: FoundIPs = msgspec.field(default=(), name="ingressIPs")
    """Addresses of ingress."""

    node_dns_ip: str | None = msgspec.field(default=None, name="nodeDNSIP")
    """The address of the DNS server with the nodes' names."""

    load_balancer: Annotated[
        BareMetalLoadBalancer | None, default({"type": "OpenShiftManagedDefault"})
    ] = None
    """The load balancer of the API server and of ingress."""

    machine_networks: Networks = ()
    """Networks that the machines are in, each as a CIDR."""


class PlatformDetails(Part):
    """The opaque details of platforms, by their names."""

    alibaba_cloud: Details = None
    """Details of Alibaba Cloud, kept as they come."""

    aws: Details = None
    """Details of Amazon Web Services, kept as they come."""

    azure: Details = None
    """Details of Microsoft Azure, kept as they come."""

    equinix_metal: Details = None
    """Details of Equinix Metal, kept as they come."""

    external: Details = None
    """Details of a platform whose integration is not part of the cluster, kept as they come."""

    gcp: Details = None
    """Details of Google Cloud, kept as they come."""

    ibmcloud: Details = None
    """Details of IBM Cloud, kept as they come."""

    kubevirt: Details = None
    """Details of KubeVirt, kept as they come."""

    nutanix: Details = None
    """Details of Nutanix, kept as they come."""

    openstack: Details = None
    """Details of OpenStack, kept as they come."""

    ovirt: Details = None
    """Details of oVirt, kept as they come."""

    powervs: Details = None
    """Details of IBM Power Virtual Server, kept as they come."""

    vsphere: Details = None
    """Details of VMware vSphere, kept as they come."""


class PlatformSpec(PlatformDetails):
    """The desired configuration of the platform."""

    type: Annotated[str | None, one_of(PlatformType)] = None
    """The platform. Only the field of this platform is in effect."""

    baremetal: Annotated[BareMetalSpec | None, rules(KEEPS_API_SERVER_IPS, KEEPS_INGRESS_IPS)] = (
        None
    )
    """The desired configuration of a bare metal platform."""


class PlatformStatus(PlatformDetails):
    """The observed platform."""

    type: Annotated[str | None, one_of(PlatformType)] = None
    """The platform, which never changes. Only the field of this platform is in effect."""

    baremetal: BareMetalStatus | None = None
    """The observed bare metal platform."""
