"""BareMetalHost: a machine that metal3 powers, inspects and provisions.

No operator of ours reads one: metal3 does. The types are complete, so that the API server keeps all
that metal3 writes. `hardware` has what it finds out about a machine.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from quarterdeck.api.custom_resource import CATEGORY, SELF_MANAGED, Column, CustomResource
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.metal3_v1alpha1.hardware import MAC_ADDRESS, HardwareDetails
from quarterdeck.api.schema import NULLABLE, default, number, one_of, text


class BootMode(StrEnum):
    """How the firmware boots."""

    UEFI = "UEFI"
    LEGACY = "legacy"


class ChecksumType(StrEnum):
    """The algorithms of an image's checksum."""

    MD5 = "md5"
    SHA256 = "sha256"
    SHA512 = "sha512"


class ImageFormat(StrEnum):
    """The formats of an image."""

    RAW = "raw"
    QCOW2 = "qcow2"
    VDI = "vdi"
    VMDK = "vmdk"


class ErrorType(StrEnum):
    """What failed."""

    PROVISIONED_REGISTRATION = "provisioned registration error"
    REGISTRATION = "registration error"
    INSPECTION = "inspection error"
    PROVISIONING = "provisioning error"
    POWER_MANAGEMENT = "power management error"


class OperationalStatus(StrEnum):
    """The states of a host."""

    UNKNOWN = ""
    OK = "OK"
    DISCOVERED = "discovered"
    ERROR = "error"


class ManagementController(Part):
    """How to reach the machine's management controller (BMC)."""

    address: str
    """Its URL; the scheme gives the protocol."""

    credentials_name: str
    """The Secret with its `username` and `password`, in the host's namespace."""

    disable_certificate_verification: bool | None = None
    """Whether not to verify its certificate. Somebody between can then read the credentials."""


class SecretReference(Part):
    """A Secret, perhaps in another namespace."""

    name: str | None = None
    """The Secret's name."""

    namespace: str | None = None
    """The Secret's namespace."""


class ConsumerReference(Part):
    """The object that uses a host."""

    api_version: str | None = None
    """Its API version."""

    kind: str | None = None
    """Its kind."""

    namespace: str | None = None
    """Its namespace."""

    name: str | None = None
    """Its name."""

    uid: str | None = None
    """Its uid."""

    resource_version: str | None = None
    """Its resource version."""

    field_path: str | None = None
    """The part of it that is meant; by default the whole."""


class Image(Part):
    """An image to write to the machine's disk."""

    url: str
    """Where it is."""

    checksum: str
    """Its checksum, or a URL of it."""

    checksum_type: Annotated[str | None, one_of(ChecksumType)] = None
    """The algorithm of the checksum."""

    format: Annotated[str | None, one_of(ImageFormat)] = None
    """Its format; a raw image is streamed."""


class RootDeviceHints(Part):
    """The disk that gets the image: the first one that matches all hints."""

    device_name: str | None = None
    """The Linux device name: `/dev/vda`. It has to be equal."""

    hctl: str | None = None
    """The SCSI address: `0:0:0:0`. It has to be equal."""

    model: str | None = None
    """A part of the model."""

    vendor: str | None = None
    """A part of the vendor's name."""

    serial_number: str | None = None
    """The serial number. It has to be equal."""

    min_size_gigabytes: Annotated[int | None, number(minimum=0)] = None
    """The least size."""

    wwn: str | None = None
    """The storage's unique identifier. It has to be equal."""

    wwn_with_extension: str | None = None
    """The unique identifier with the vendor's extension. It has to be equal."""

    wwn_vendor_extension: str | None = None
    """The vendor's extension. It has to be equal."""

    rotational: bool | None = None
    """Whether the disk rotates."""


class Taint(Part):
    """A taint of the node that the machine becomes."""

    key: str
    """The taint's key."""

    value: str | None = None
    """The taint's value."""

    effect: str
    """NoSchedule, PreferNoSchedule or NoExecute."""

    time_added: datetime | None = None
    """When the taint was added."""


class BareMetalHostSpec(Part):
    """The desired host."""

    online: bool
    """Whether the machine is to be powered on."""

    bmc: ManagementController | None = None
    """How to reach the machine's management controller."""

    boot_mac_address: Annotated[str | None, text(pattern=MAC_ADDRESS)] = msgspec.field(
        default=None, name="bootMACAddress"
    )
    """The address of the network interface from which the machine boots."""

    boot_mode: Annotated[str | None, one_of(BootMode)] = None
    """How the firmware boots; UEFI by default."""

    hardware_profile: str | None = None
    """The profile of the hardware, if the inspection cannot find it."""

    root_device_hints: RootDeviceHints | None = None
    """Which disk gets the image."""

    image: Image | None = None
    """The image to write; none leaves the machine as it is, or clears it."""

    externally_provisioned: bool | None = None
    """Whether others provision the machine, so that only its power is managed. Ignored with an
    image."""

    consumer_ref: ConsumerReference | None = None
    """The object that uses the host; a host with one is in use."""

    user_data: SecretReference | None = None
    """The Secret with the user data for the first boot."""

    network_data: SecretReference | None = None
    """The Secret with the network configuration for the first boot."""

    meta_data: SecretReference | None = None
    """The Secret with the metadata for the first boot."""

    taints: tuple[Taint, ...] = ()
    """All taints of the node that the machine becomes."""

    description: str | None = None
    """A text by which people recognize the host."""


class CredentialsStatus(Part):
    """A version of the credentials of the management controller."""

    credentials: SecretReference | None = None
    """The Secret."""

    credentials_version: str | None = None
    """The Secret's resource version."""


class OperationMetric(Part):
    """When an operation began and ended."""

    start: Annotated[datetime | None, NULLABLE] = None
    """When it began."""

    end: Annotated[datetime | None, NULLABLE] = None
    """When it ended."""


class OperationHistory(Part):
    """When each operation last ran."""

    register: OperationMetric | None = None
    """The registration."""

    inspect: OperationMetric | None = None
    """The inspection of the hardware."""

    provision: OperationMetric | None = None
    """The provisioning."""

    deprovision: OperationMetric | None = None
    """The removal of the image."""


class ProvisionStatus(Part):
    """How far the host is provisioned."""

    state: str
    """The state: `provisioned`, for example."""

    id: str = msgspec.field(name="ID")
    """The host's identifier in Ironic."""

    image: Image | None = None
    """The image that was written."""

    root_device_hints: RootDeviceHints | None = None
    """The hints that chose the disk."""

    boot_mode: Annotated[str | None, one_of(BootMode)] = None
    """How the firmware boots."""


class BareMetalHostStatus(Part):
    """The state of the host, which metal3 writes."""

    operational_status: Annotated[str, one_of(OperationalStatus)]
    """The state of the host."""

    error_type: Annotated[str | None, one_of(ErrorType)] = None
    """What failed, if the state is `error`."""

    error_message: str
    """The last error."""

    error_count: Annotated[int, default(0)]
    """How many errors there were since the last success."""

    last_updated: datetime | None = None
    """When the status was last written."""

    hardware_profile: str
    """The profile of the hardware."""

    hardware: HardwareDetails | None = None
    """The hardware, as the inspection found it."""

    provisioning: ProvisionStatus
    """How far the host is provisioned."""

    good_credentials: CredentialsStatus | None = None
    """The last credentials that worked."""

    tried_credentials: CredentialsStatus | None = None
    """The last credentials that were tried."""

    powered_on: bool
    """Whether the machine is powered on."""

    operation_history: OperationHistory
    """When each operation last ran."""


class BareMetalHost(TypedObject):
    """A machine that metal3 powers, inspects and provisions."""

    api_version: str = always("metal3.io/v1alpha1")
    kind: str = always("BareMetalHost")

    spec: BareMetalHostSpec | None = None
    """The desired host."""

    status: BareMetalHostStatus | None = None
    """The state of the host."""


BARE_METAL_HOSTS = CustomResource(
    group="metal3.io",
    categories=(CATEGORY,),
    version="v1alpha1",
    kind="BareMetalHost",
    plural="baremetalhosts",
    namespaced=True,
    type=BareMetalHost,
    short_names=("bmh", "bmhost"),
    columns=(
        Column("Status", ".status.operationalStatus", "The state of the host.", priority=1),
        Column("Provisioning_Status", ".status.provisioning.state", "How far it is provisioned."),
        Column("Consumer", ".spec.consumerRef.name", "The object that uses it."),
        Column("BMC", ".spec.bmc.address", "The management controller.", priority=1),
        Column("Hardware_Profile", ".status.hardwareProfile", "The hardware.", priority=1),
        Column("Online", ".spec.online", "Whether it is to be powered on."),
        Column("Error", ".status.errorMessage", "The last error."),
    ),
    profiles=SELF_MANAGED,
)
