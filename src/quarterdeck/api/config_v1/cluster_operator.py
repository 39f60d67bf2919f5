"""ClusterOperator: how an operator tells the cluster how it is."""

from datetime import datetime
from typing import Annotated, Any

from quarterdeck.api.custom_resource import (
    ALL_PROFILES,
    Column,
    CustomResource,
    condition_column,
)
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import NULLABLE, OPAQUE, list_map


class ClusterStatusCondition(Part):
    """One aspect of the health of an operator or of the cluster's version.

    Status is free text here, as it always was in this API; True, False and Unknown are its words.
    """

    type: str
    """Which aspect: Available, Progressing, Degraded, Upgradeable, sometimes Disabled."""

    status: str
    """Whether the condition holds: True, False, or Unknown."""

    last_transition_time: datetime
    """When the status last changed. A new reason or message alone does not move it."""

    reason: str = always("")
    """Why the status is what it is, in one CamelCase word for programs."""

    message: str = always("")
    """The same for people, with details; may have several lines."""


ClusterStatusConditions = Annotated[tuple[ClusterStatusCondition, ...], list_map("type")]


class OperandVersion(Part):
    """The version of one thing that the operator runs."""

    name: str
    """What has the version; `operator` is the operator itself."""

    version: str
    """The version that runs everywhere. While a roll-out is under way this is still the old one."""


class ObjectReference(Part):
    """An object, or all objects of a kind, that tell more about an operator."""

    group: str
    """The API group; empty for the core group."""

    resource: str
    """The plural name of the kind in that group, in lower case."""

    namespace: str | None = None
    """Where the object is; absent for a cluster-scoped one."""

    name: str
    """Which object; empty for all in the namespace."""


class ClusterOperatorSpec(Part):
    """Empty: an operator is configured by its own kinds."""


class ClusterOperatorStatus(Part):
    """What the operator says about itself."""

    conditions: ClusterStatusConditions = ()
    """The operator's health, one condition per aspect."""

    versions: tuple[OperandVersion, ...] = ()
    """What runs in which version. An update is over when all of them have arrived at the
    release's versions."""

    related_objects: tuple[ObjectReference, ...] = ()
    """What to look at, or to collect, when something is wrong with the operator."""

    extension: Annotated[dict[str, Any] | None, NULLABLE, OPAQUE] = None
    """Anything else that the operator reports, in a form of its own."""


class ClusterOperator(TypedObject):
    """The health of one cluster operator, reported by that operator.

    The cluster version operator waits for it during an update, and administrators read it with
    `kubectl get clusteroperators`.
    """

    api_version: str = always("config.openshift.io/v1")
    kind: str = always("ClusterOperator")

    spec: ClusterOperatorSpec
    """Empty: an operator is configured by its own kinds."""

    status: ClusterOperatorStatus = ClusterOperatorStatus()
    """What the operator says about itself."""


CLUSTER_OPERATORS = CustomResource(
    group="config.openshift.io",
    version="v1",
    kind="ClusterOperator",
    plural="clusteroperators",
    namespaced=False,
    type=ClusterOperator,
    short_names=("co",),
    columns=(
        Column(
            "Version",
            '.status.versions[?(@.name=="operator")].version',
            "The version that the operator has reached.",
        ),
        condition_column("Available", "Whether what the operator runs can be used."),
        condition_column("Progressing", "Whether the operator is rolling out a change."),
        condition_column("Degraded", "Whether something is persistently wrong."),
        condition_column(
            "Available",
            "Time since Available last changed.",
            show="lastTransitionTime",
            name="Since",
            column_type="date",
        ),
        condition_column(
            "Degraded", "What is wrong, if something is.", show="message", name="Message"
        ),
    ),
    profiles=ALL_PROFILES,
)
