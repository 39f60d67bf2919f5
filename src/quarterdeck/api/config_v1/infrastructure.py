"""Infrastructure: the platform of the cluster.

The details of the platforms are in `platforms`.
"""

from enum import StrEnum
from typing import Annotated

import msgspec

from quarterdeck.api.config_v1.platforms import PlatformSpec, PlatformStatus, PlatformType
from quarterdeck.api.custom_resource import ALL_PROFILES, CATEGORY, Column, CustomResource
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import default, one_of


class ControlPlaneTopology(StrEnum):
    """On how many machines the control plane runs."""

    HIGHLY_AVAILABLE = "HighlyAvailable"
    HIGHLY_AVAILABLE_ARBITER = "HighlyAvailableArbiter"
    SINGLE_REPLICA = "SingleReplica"
    DUAL_REPLICA = "DualReplica"
    EXTERNAL = "External"


class InfrastructureTopology(StrEnum):
    """On how many machines infrastructure services run."""

    HIGHLY_AVAILABLE = "HighlyAvailable"
    SINGLE_REPLICA = "SingleReplica"


class CPUPartitioning(StrEnum):
    """Which nodes reserve CPUs for the cluster's own workloads."""

    NONE = "None"
    ALL_NODES = "AllNodes"


class ConfigMapFileReference(Part):
    """A key of a ConfigMap in the namespace `openshift-config`."""

    name: str | None = None
    """The ConfigMap's name."""

    key: str | None = None
    """The key in its data."""


class InfrastructureSpec(Part):
    """The platform's configuration by the installer or an administrator."""

    cloud_config: ConfigMapFileReference | None = None
    """The configuration of the cloud provider's integration, if there is one."""

    platform_spec: PlatformSpec = PlatformSpec()
    """The desired configuration of the platform."""


class InfrastructureStatus(Part):
    """The observed platform, which does not change."""

    infrastructure_name: str | None = None
    """The name of the cluster's resources at its provider; derived from the cluster's name."""

    platform: Annotated[str | None, one_of(PlatformType)] = None
    """The platform, if `platformStatus.type` is not set. Older clusters have only this field."""

    platform_status: PlatformStatus | None = None
    """The observed platform."""

    etcd_discovery_domain: str | None = None
    """The domain of etcd's SRV records. Not used any more."""

    api_server_url: str | None = msgspec.field(default=None, name="apiServerURL")
    """The URL of the API server for users and external clients."""

    api_server_internal_url: str | None = msgspec.field(default=None, name="apiServerInternalURI")
    """The URL of the API server for nodes and components of the cluster."""

    control_plane_topology: Annotated[
        str | None, one_of(ControlPlaneTopology), default("HighlyAvailable")
    ] = None
    """On how many machines the control plane runs. External: it runs outside, as in a hosted
    cluster."""

    infrastructure_topology: Annotated[
        str | None, one_of(InfrastructureTopology), default("HighlyAvailable")
    ] = None
    """On how many machines infrastructure services run, such as the router."""

    cpu_partitioning: Annotated[str | None, one_of(CPUPartitioning), default("None")] = None
    """Whether nodes reserve CPUs for the cluster's own workloads."""


class Infrastructure(TypedObject):
    """The platform of the cluster. The only object in effect is `cluster`."""

    api_version: str = always("config.openshift.io/v1")
    kind: str = always("Infrastructure")

    spec: InfrastructureSpec
    """The platform's configuration by the installer or an administrator."""

    status: InfrastructureStatus = InfrastructureStatus()
    """The observed platform."""

    @property
    def platform_type(self) -> str:
        """The platform's type, from the older field if the newer one is not set."""
        newer = self.status.platform_status.type if self.status.platform_status else None
        return newer or self.status.platform or PlatformType.UNSET


INFRASTRUCTURES = CustomResource(
    group="config.openshift.io",
    categories=(CATEGORY,),
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
            "On how many machines the control plane runs.",
        ),
        Column("API", ".status.apiServerURL", "The URL of the API server.", priority=1),
    ),
    profiles=ALL_PROFILES,
)
