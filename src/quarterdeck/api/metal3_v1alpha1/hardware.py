"""The hardware of a machine, as metal3's inspection finds it."""

from typing import Annotated

import msgspec

from quarterdeck.api.meta import Part
from quarterdeck.api.schema import keywords, text

MAC_ADDRESS = "[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}"
VLANNumber = Annotated[int, keywords(format="int32", minimum=0, maximum=4094)]


class CPU(Part):
    """The processors of a machine."""

    arch: str
    """The architecture."""

    model: str
    """The model."""

    clock_megahertz: float
    """The clock rate, in MHz."""

    flags: tuple[str, ...]
    """The features."""

    count: int
    """How many there are."""


class BIOS(Part):
    """The firmware's release."""

    date: str
    """When it was built."""

    vendor: str
    """Who made it."""

    version: str
    """Its version."""


class Firmware(Part):
    """The firmware of a machine."""

    bios: BIOS
    """The firmware's release."""


class VLAN(Part):
    """A VLAN that a network interface can use."""

    id: VLANNumber
    """The VLAN's number."""

    name: str | None = None
    """The VLAN's name."""


class NetworkInterface(Part):
    """A network interface of a machine; one with two addresses is listed twice."""

    name: str
    """Its name: `eno1`."""

    model: str
    """The identifiers of vendor and product: `0x8086 0x1572`."""

    mac: Annotated[str, text(pattern=MAC_ADDRESS)]
    """Its MAC address."""

    ip: str
    """Its address, of either family; may be empty."""

    speed_gbps: int = msgspec.field(name="speedGbps")
    """Its speed, in Gbit/s."""

    vlans: tuple[VLAN, ...] = ()
    """The VLANs that it can use."""

    vlan_id: VLANNumber
    """The VLAN of untagged frames."""

    pxe: bool
    """Whether the machine can boot from it."""


class Storage(Part):
    """A disk of a machine."""

    name: str
    """The Linux device name, which another boot may change: `/dev/sda`."""

    rotational: bool
    """Whether it rotates."""

    size_bytes: Annotated[int, keywords(format="int64")]
    """Its size."""

    vendor: str | None = None
    """Who made it."""

    model: str | None = None
    """Its model."""

    serial_number: str
    """Its serial number."""

    wwn: str | None = None
    """Its unique identifier."""

    wwn_vendor_extension: str | None = None
    """The vendor's extension of the identifier."""

    wwn_with_extension: str | None = None
    """The identifier with the extension."""

    hctl: str | None = None
    """Its SCSI address."""


class SystemVendor(Part):
    """Who made a machine."""

    manufacturer: str
    """The manufacturer's name."""

    product_name: str
    """The product's name."""

    serial_number: str
    """The machine's serial number."""


class HardwareDetails(Part):
    """The hardware of a machine."""

    system_vendor: SystemVendor
    """Who made it."""

    firmware: Firmware
    """Its firmware."""

    ram_mebibytes: int
    """Its memory, in MiB."""

    nics: tuple[NetworkInterface, ...]
    """Its network interfaces."""

    storage: tuple[Storage, ...]
    """Its disks."""

    cpu: CPU
    """Its processors."""

    hostname: str
    """The name under which it booted."""
