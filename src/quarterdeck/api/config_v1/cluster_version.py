"""ClusterVersion: which release the cluster is to run, and which it runs.

The updates it can move to, and their risks, are in `cluster_version_updates`.
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
    Column,
    CustomResource,
    condition_column,
)
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import NULLABLE, Rule, items, list_map, one_of, rules


class Capability(StrEnum):
    """An optional part of the cluster, which can be left out."""

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
    """The capabilities that a release line came with, under one name."""

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
    """How far an update came."""

    COMPLETED = "Completed"
    PARTIAL = "Partial"


CapabilityName = Annotated[str, one_of(Capability)]

IMAGE_OR_ARCHITECTURE = Rule(
    "!has(self.architecture) || !has(self.image) || self.architecture == '' || self.image == ''",
    "architecture and image cannot both be set: an image has its architectures already",
)

# With has(): where upstream reads an absent version, the server reports a failing rule instead
# of this message.
ARCHITECTURE_NEEDS_VERSION = Rule(
    "!has(self.architecture) || self.architecture == ''"
    " || (has(self.version) && self.version != '')",
    "version must be set if architecture is set",
)

MARKETPLACE_NEEDS_OLM = Rule(
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
    """The capabilities to start from. Absent, they are those of the running release, vCurrent."""

    additional_enabled_capabilities: tuple[CapabilityName, ...] = ()
    """Capabilities to have besides those of the baseline."""


class CapabilitiesStatus(Part):
    """The optional parts that are there."""

    enabled_capabilities: tuple[CapabilityName, ...] = ()
    """Capabilities that are managed now. One that was ever enabled stays."""

    known_capabilities: tuple[CapabilityName, ...] = ()
    """Capabilities that the running release knows."""


class ComponentOverride(Part):
    """An object of the payload that is to be left alone."""

    kind: str
    """The object's kind."""

    group: str
    """The object's API group; empty for the core group."""

    namespace: str
    """The object's namespace; empty for a cluster-scoped one."""

    name: str
    """The object's name."""

    unmanaged: bool
    """True: the object is neither created nor updated any more. Minor updates are held back as
    long as there is such an entry."""


class UpdateHistory(Part):
    """One release that the cluster ran, or tried to."""

    state: str
    """Completed once everything of the release was applied, Partial before that."""

    started_time: datetime
    """When the move to this release began."""

    completion_time: Annotated[datetime | None, NULLABLE]
    """When the release was fully applied, or another took its place; null until then."""

    version: str | None = None
    """The release's version, once it is known."""

    image: str
    """The release's image."""

    verified: bool
    """Whether the release was checked to be what it claims to be before it was applied."""

    accepted_risks: str | None = None
    """Warnings that were overridden to start this update."""


class ClusterVersionSpec(Part):
    """The release that is wanted."""

    cluster_id: str = msgspec.field(name="clusterID")
    """What tells this cluster from all others: a UUID."""

    desired_update: Annotated[
        Update | None, rules(IMAGE_OR_ARCHITECTURE, ARCHITECTURE_NEEDS_VERSION)
    ] = None
    """The release to move to. Setting it starts an update."""

    upstream: str | None = None
    """The update service to ask. Absent, it is the default one."""

    channel: str | None = None
    """The stream of releases to be offered updates from."""

    capabilities: CapabilitiesSpec | None = None
    """The optional parts that are wanted."""

    overrides: Annotated[
        tuple[ComponentOverride, ...], list_map("kind", "group", "namespace", "name")
    ] = ()
    """Objects of the payload that are to be left alone. For emergencies: nobody repairs or updates
    them as long as they are listed."""


class ClusterVersionStatus(Part):
    """The release that runs, and the updates that are possible."""

    desired: Release
    """The release that the cluster is moving to, or has arrived at."""

    history: tuple[UpdateHistory, ...] = ()
    """The releases that the cluster ran, newest first. Old entries are pruned; the first, the
    newest five and the latest completed always stay."""

    observed_generation: int
    """The `metadata.generation` that was last acted on. Below the object's, a change is still
    to come."""

    version_hash: str
    """A fingerprint of the payload that is being applied; it says when the same version has new
    content."""

    capabilities: CapabilitiesStatus | None = None
    """The optional parts that are there."""

    conditions: ClusterStatusConditions = ()
    """How the cluster's version is, one condition per aspect: Available, Failing, Progressing,
    ReleaseAccepted, Upgradeable."""

    available_updates: Annotated[tuple[Release, ...] | None, NULLABLE]
    """Releases that are recommended to move to. Null while they are not known."""

    conditional_updates: Annotated[tuple[ConditionalUpdate, ...], items(max_items=500)] = ()
    """Releases that are recommended only where their known risks do not apply."""


class ClusterVersion(TypedObject):
    """The release that the cluster runs or is moving to. The one that counts is named `version`."""

    api_version: str = always("config.openshift.io/v1")
    kind: str = always("ClusterVersion")

    spec: ClusterVersionSpec
    """The release that is wanted."""

    status: ClusterVersionStatus | None = None
    """The release that runs, and the updates that are possible."""


CLUSTER_VERSIONS = CustomResource(
    group="config.openshift.io",
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
