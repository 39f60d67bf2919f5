"""Provisioning: how metal3 reaches the machines that it provisions.

The API server checks only the types and the name. The rules about addresses are in
`quarterdeck.metal3.validation`: an operator reports all faults of an object at once, and keeps what
runs.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from quarterdeck.api.custom_resource import AGE, CATEGORY, SELF_MANAGED, Column, CustomResource
from quarterdeck.api.meta import ObjectMeta, Part, TypedObject, always
from quarterdeck.api.schema import ValidationRule, keywords, one_of

PROVISIONING_NAME = "provisioning-configuration"
"""The name of the only Provisioning."""

SINGLETON = ValidationRule(
    f"self.metadata.name == '{PROVISIONING_NAME}'",
    f"Provisioning is a singleton; its name must be '{PROVISIONING_NAME}'",
)


class ProvisioningNetwork(StrEnum):
    """Who runs the network from which machines boot."""

    MANAGED = "Managed"
    UNMANAGED = "Unmanaged"
    DISABLED = "Disabled"


class ProvisioningSpec(Part):
    """The configuration of metal3."""

    provisioning_network: Annotated[str | None, one_of(ProvisioningNetwork)] = None
    """The provisioning network. Managed: metal3 serves DHCP and PXE in it. Unmanaged: another
    server serves DHCP. Disabled: there is none, and machines boot from virtual media. Managed by
    default."""

    provisioning_dhcp_external: bool | None = msgspec.field(
        default=None, name="provisioningDHCPExternal"
    )
    """The older form of provisioningNetwork, which counts if that one is not set: true means
    Unmanaged."""

    provisioning_interface: str | None = None
    """The network interface of the control plane's nodes in the provisioning network: `ens3`."""

    provisioning_ip: str | None = msgspec.field(default=None, name="provisioningIP")
    """The address of metal3 in the provisioning network: inside provisioningNetworkCIDR, outside
    provisioningDHCPRange."""

    provisioning_network_cidr: str | None = msgspec.field(
        default=None, name="provisioningNetworkCIDR"
    )
    """The provisioning network: `172.30.20.0/24`."""

    provisioning_dhcp_range: str | None = msgspec.field(default=None, name="provisioningDHCPRange")
    """The first and the last address that metal3 gives to machines, with a comma between them. It
    is required if the network is Managed, and not used otherwise."""

    provisioning_os_download_url: str | None = msgspec.field(
        default=None, name="provisioningOSDownloadURL"
    )
    """The image of the operating system of new machines, compressed, with its checksum:
    `https://images.example.com/os.qcow2.gz?sha256=…`."""

    watch_all_namespaces: bool | None = None
    """Whether metal3 manages the BareMetalHosts of all namespaces; by default only those beside
    it."""

    @property
    def network(self) -> str:
        """The provisioning network's mode, from the older field if the newer one is not set."""
        older = (
            ProvisioningNetwork.UNMANAGED
            if self.provisioning_dhcp_external
            else ProvisioningNetwork.MANAGED
        )
        return self.provisioning_network or older


class OperatorCondition(Part):
    """A condition, as kinds of this age have it."""

    type: str | None = None
    """The aspect in CamelCase."""

    status: str | None = None
    """True, False or Unknown."""

    last_transition_time: datetime | None = None
    """When the status last changed."""

    reason: str | None = None
    """The reason, one CamelCase word for programs."""

    message: str | None = None
    """The reason for people."""


class GenerationStatus(Part):
    """The generation of an object that was last acted on."""

    group: str | None = None
    """The object's API group."""

    resource: str | None = None
    """The object's resource, in the plural."""

    namespace: str | None = None
    """The object's namespace."""

    name: str | None = None
    """The object's name."""

    last_generation: Annotated[int | None, keywords(format="int64")] = None
    """The generation."""

    hash: str | None = None
    """A hash of the content, for objects without a generation."""


class ProvisioningStatus(Part):
    """Whether the configuration is valid; how metal3 is doing is in the ClusterOperator."""

    observed_generation: Annotated[int | None, keywords(format="int64")] = None
    """The `metadata.generation` that was last acted on."""

    conditions: tuple[OperatorCondition, ...] = ()
    """The conditions: Valid says whether metal3 can be configured so."""

    version: str | None = None
    """The version that the status is about."""

    ready_replicas: Annotated[int | None, keywords(format="int32")] = None
    """How many replicas are ready."""

    generations: tuple[GenerationStatus, ...] = ()
    """The generations of the objects that were last written."""


class Provisioning(TypedObject):
    """How metal3 reaches its machines. The only object is `provisioning-configuration`."""

    api_version: str = always("metal3.io/v1alpha1")
    kind: str = always("Provisioning")
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    spec: ProvisioningSpec = ProvisioningSpec()
    """The configuration of metal3."""

    status: ProvisioningStatus = ProvisioningStatus()
    """The state of metal3."""


PROVISIONINGS = CustomResource(
    group="metal3.io",
    categories=(CATEGORY,),
    version="v1alpha1",
    kind="Provisioning",
    plural="provisionings",
    namespaced=False,
    type=Provisioning,
    columns=(
        Column("Network", ".spec.provisioningNetwork", "Who runs the provisioning network."),
        Column("Interface", ".spec.provisioningInterface", "The interface in that network."),
        Column("IP", ".spec.provisioningIP", "The address of metal3."),
        Column(
            "Valid",
            '.status.conditions[?(@.type=="Valid")].status',
            "Whether metal3 can be configured with it.",
        ),
        AGE,
    ),
    rules=(SINGLETON,),
    profiles=SELF_MANAGED,
)
