"""Infrastructure: what the cluster stands on.

The platforms' own details are in `platforms`.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from quarterdeck.api.config_v1.platforms import PlatformSpec, PlatformStatus, PlatformType
from quarterdeck.api.custom_resource import ALL_PROFILES, Column, CustomResource
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import default, one_of


class ControlPlaneTopology(StrEnum):
    """How many machines the control plane runs on."""

    HIGHLY_AVAILABLE = "HighlyAvailable"
    HIGHLY_AVAILABLE_ARBITER = "HighlyAvailableArbiter"
    SINGLE_REPLICA = "SingleReplica"
    DUAL_REPLICA = "DualReplica"
    EXTERNAL = "External"


class InfrastructureTopology(StrEnum):
    """How many machines infrastructure services run on."""

    HIGHLY_AVAILABLE = "HighlyAvailable"
    SINGLE_REPLICA = "SingleReplica"


class CPUPartitioning(StrEnum):
    """Which nodes keep CPUs for the cluster's own work."""

    NONE = "None"
    ALL_NODES = "AllNodes"


class ConfigMapFileReference(Part):
    """A key of a ConfigMap in the namespace `openshift-config`."""

    name: str | None = None
    """The ConfigMap's name."""

    key: str | None = None
    """The key in its data."""


class InfrastructureSpec(Part):
    """What the installer, or an administrator, said about the platform."""

    cloud_config: ConfigMapFileReference | None = None
    """Where the configuration for the cloud provider's integration is, if there is one."""

    platform_spec: PlatformSpec = PlatformSpec()
    """What is wanted of the platform."""


class InfrastructureStatus(Part):
    """What was found out about the platform, and does not change."""

    infrastructure_name: str | None = None
    """A name for the cluster's resources at its provider; derived from the cluster's name."""

    platform: Annotated[str | None, one_of(PlatformType)] = None
    """The platform, where `platformStatus.type` is not yet set. Older clusters have only this."""

    platform_status: PlatformStatus | None = None
    """What was found out about the platform."""

    etcd_discovery_domain: str | None = None
    """The domain for SRV records of etcd. Nobody reads it any more."""

    api_server_url: str | None = msgspec.field(default=None, name="apiServerURL")
    """The URL of the API server for users and clients outside."""

    api_server_internal_url: str | None = msgspec.field(default=None, name="apiServerInternalURI")
    """The URL of the API server for nodes and the cluster's own parts."""

    control_plane_topology: Annotated[
        str | None, one_of(ControlPlaneTopology), default("HighlyAvailable")
    ] = None
    """How many machines the control plane runs on. External: it runs elsewhere, as in a hosted
    cluster."""

    infrastructure_topology: Annotated[
        str | None, one_of(InfrastructureTopology), default("HighlyAvailable")
    ] = None
    """How many machines there are for infrastructure services, such as the router."""

    cpu_partitioning: Annotated[str | None, one_of(CPUPartitioning), default("None")] = None
    """Whether nodes keep CPUs for the cluster's own work."""


class Infrastructure(TypedObject):
    """What the cluster stands on. The one that counts is named `cluster`."""

    api_version: str = always("config.openshift.io/v1")
    kind: str = always("Infrastructure")

    spec: InfrastructureSpec
    """What the installer, or an administrator, said about the platform."""

    status: InfrastructureStatus = InfrastructureStatus()
    """What was found out about the platform."""

    @property
    def platform_type(self) -> str:
        """The platform's type, from the older field where the newer one is not set."""
        newer = self.status.platform_status.type if self.status.platform_status else None
        return newer or self.status.platform or PlatformType.UNSET


INFRASTRUCTURES = CustomResource(
    group="config.openshift.io",
    version="v1",
    kind="Infrastructure",
    plural="infrastructures",
    namespaced=False,
    type=Infrastructure,
    columns=(
        Column("Platform", ".status.platformStatus.type", "The type of the platform."),
        Column(
            "Control-Plane",
            ".status.controlPlaneTopology",
            "How many machines the control plane runs on.",
        ),
        Column("API", ".status.apiServerURL", "The URL of the API server.", priority=1),
    ),
    profiles=ALL_PROFILES,
)
