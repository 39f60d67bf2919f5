"""ClusterVersion: the desired release of the cluster, and the current one.

The possible updates, and their risks, are in `cluster_version_updates`.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

import msgspec

from quarterdeck.api.config_v1.cluster_operator import ClusterStatusConditions
from quarterdeck.api.config_v1.cluster_version_updates import (
    ConditionalUpdate,
    Release,
    Update,
)
from quarterdeck.api.custom_resource import (
    ALL_PROFILES,
    CATEGORY,
    Column,
    CustomResource,
    condition_column,
)
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import NULLABLE, ValidationRule, items, list_map, one_of, rules


class Capability(StrEnum):
    """An optional part of the cluster."""

    OPENSHIFT_SAMPLES = "openshift-samples"
    BAREMETAL = "baremetal"
    MARKETPLACE = "marketplace"
    CONSOLE = "Console"
    INSIGHTS = "Insights"
    STORAGE = "Storage"
    CSI_SNAPSHOT = "CSISnapshot"
    NODE_TUNING = "NodeTuning"
    MACHINE_API = "MachineAPI"
    BUILD = "Build"
    DEPLOYMENT_CONFIG = "DeploymentConfig"
    IMAGE_REGISTRY = "ImageRegistry"
    OPERATOR_LIFECYCLE_MANAGER = "OperatorLifecycleManager"
    CLOUD_CREDENTIAL = "CloudCredential"
    INGRESS = "Ingress"
    CLOUD_CONTROLLER_MANAGER = "CloudControllerManager"
    OPERATOR_LIFECYCLE_MANAGER_V1 = "OperatorLifecycleManagerV1"


class CapabilitySet(StrEnum):
    """A named set of capabilities, those of a release line."""

    NONE = "None"
    V4_11 = "v4.11"
    V4_12 = "v4.12"
    V4_13 = "v4.13"
    V4_14 = "v4.14"
    V4_15 = "v4.15"
    V4_16 = "v4.16"
    V4_17 = "v4.17"
    V4_18 = "v4.18"
    CURRENT = "vCurrent"


class UpdateState(StrEnum):
    """Whether an update is complete."""

    COMPLETED = "Completed"
    PARTIAL = "Partial"


CapabilityName = Annotated[str, one_of(Capability)]

IMAGE_OR_ARCHITECTURE = ValidationRule(
    "!has(self.architecture) || !has(self.image) || self.architecture == '' || self.image == ''",
    "architecture and image cannot both be set: an image has its architectures already",
)

# With has(): upstream's rule fails on an absent version, and the server reports that in place of
# this message.
ARCHITECTURE_NEEDS_VERSION = ValidationRule(
    "!has(self.architecture) || self.architecture == ''"
    " || (has(self.version) && self.version != '')",
    "version must be set if architecture is set",
)

MARKETPLACE_NEEDS_OLM = ValidationRule(
    """
    !has(self.spec.capabilities)
    || !has(self.spec.capabilities.additionalEnabledCapabilities)
    || !has(self.spec.capabilities.baselineCapabilitySet)
    || self.spec.capabilities.baselineCapabilitySet != 'None'
    || !('marketplace' in self.spec.capabilities.additionalEnabledCapabilities)
    || 'OperatorLifecycleManager' in self.spec.capabilities.additionalEnabledCapabilities
    || (has(self.status) && has(self.status.capabilities)
        && has(self.status.capabilities.enabledCapabilities)
        && 'OperatorLifecycleManager' in self.status.capabilities.enabledCapabilities)
    """,
    "the marketplace capability needs the OperatorLifecycleManager capability: add"
    " OperatorLifecycleManager to additionalEnabledCapabilities too",
    ".spec.capabilities.additionalEnabledCapabilities",
)


class CapabilitiesSpec(Part):
    """The optional parts that are wanted."""

    baseline_capability_set: Annotated[str | None, one_of(CapabilitySet)] = None
    """The base set of capabilities. If absent, it is vCurrent, that of the running release."""

    additional_enabled_capabilities: tuple[CapabilityName, ...] = ()
    """Capabilities in addition to the base set."""


class CapabilitiesStatus(Part):
    """The optional parts that are present."""

    enabled_capabilities: tuple[CapabilityName, ...] = ()
    """Capabilities that are enabled now. A capability cannot be disabled again."""

    known_capabilities: tuple[CapabilityName, ...] = ()
    """Capabilities that the running release knows."""


class ComponentOverride(Part):
    """An object of the payload that the operator leaves alone."""

    kind: str
    """The object's kind."""

    group: str
    """The object's API group; empty for the core group."""

    namespace: str
    """The object's namespace; empty for a cluster-scoped one."""

    name: str
    """The object's name."""

    unmanaged: bool
    """If true, the object is no longer created or updated. An entry with true blocks minor
    updates."""


class UpdateHistory(Part):
    """A release that the cluster ran, or tried to run."""

    state: str
    """Completed once everything of the release was applied, Partial before that."""

    started_time: datetime
    """When the update to this release started."""

    completion_time: Annotated[datetime | None, NULLABLE]
    """When the release was fully applied or replaced by another; null until then."""

    version: str | None = None
    """The release's version, once it is known."""

    image: str
    """The release's image."""

    verified: bool
    """Whether the release was verified before it was applied."""

    accepted_risks: str | None = None
    """Warnings that were overridden to start this update."""


class ClusterVersionSpec(Part):
    """The release that is wanted."""

    cluster_id: str = msgspec.field(name="clusterID")
    """The unique identifier of this cluster, a UUID."""

    desired_update: Annotated[
        Update | None, rules(IMAGE_OR_ARCHITECTURE, ARCHITECTURE_NEEDS_VERSION)
    ] = None
    """The release to update to. Setting it starts an update."""

    upstream: str | None = None
    """The update service. If absent, it is the default one."""

    channel: str | None = None
    """The channel from which updates are offered."""

    capabilities: CapabilitiesSpec | None = None
    """The optional parts that are wanted."""

    overrides: Annotated[
        tuple[ComponentOverride, ...], list_map("kind", "group", "namespace", "name")
    ] = ()
    """Objects of the payload that the operator leaves alone. For emergencies: nothing repairs or
    updates a listed object."""


class ClusterVersionStatus(Part):
    """The release that runs, and the updates that are possible."""

    desired: Release
    """The release that the cluster is updating to, or has reached."""

    history: tuple[UpdateHistory, ...] = ()
    """The releases that the cluster ran, newest first. Old entries are pruned, but not the first,
    the newest five and the latest completed one."""

    observed_generation: int
    """The `metadata.generation` that was last acted on. If it is below the object's, a change is
    pending."""

    version_hash: str
    """A hash of the payload that is being applied; it changes if the same version has new
    content."""

    capabilities: CapabilitiesStatus | None = None
    """The optional parts that are present."""

    conditions: ClusterStatusConditions = ()
    """The state of the cluster's version, one condition per aspect: Available, Failing,
    Progressing, ReleaseAccepted, Upgradeable."""

    available_updates: Annotated[tuple[Release, ...] | None, NULLABLE]
    """Recommended updates. Null while they are not known."""

    conditional_updates: Annotated[tuple[ConditionalUpdate, ...], items(max_items=500)] = ()
    """Updates that are recommended only for clusters to which their known risks do not apply."""


class ClusterVersion(TypedObject):
    """The release that the cluster runs or updates to. The only object in effect is `version`."""

    api_version: str = always("config.openshift.io/v1")
    kind: str = always("ClusterVersion")

    spec: ClusterVersionSpec
    """The release that is wanted."""

    status: ClusterVersionStatus | None = None
    """The release that runs, and the updates that are possible."""


CLUSTER_VERSIONS = CustomResource(
    group="config.openshift.io",
    categories=(CATEGORY,),
    version="v1",
    kind="ClusterVersion",
    plural="clusterversions",
    namespaced=False,
    type=ClusterVersion,
    short_names=("cv",),
    columns=(
        Column(
            "Version",
            '.status.history[?(@.state=="Completed")].version',
            "The newest release that was fully applied.",
        ),
        condition_column("Available", "Whether a release was ever fully applied and works."),
        condition_column("Progressing", "Whether a release is being applied."),
        condition_column(
            "Progressing",
            "Time since Progressing last changed.",
            show="lastTransitionTime",
            name="Since",
            column_type="date",
        ),
        condition_column("Progressing", "What is being done.", show="message", name="Status"),
    ),
    rules=(MARKETPLACE_NEEDS_OLM,),
    profiles=ALL_PROFILES,
)
