"""ClusterOperator: an operator's report of its health."""

from datetime import datetime
from typing import Annotated, Any

from quarterdeck.api.custom_resource import (
    ALL_PROFILES,
    CATEGORY,
    Column,
    CustomResource,
    condition_column,
)
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import NULLABLE, OPAQUE, list_map


class ClusterStatusCondition(Part):
    """One aspect of the health of an operator or of the cluster's version.

    The status is not an enum in this API; its values are True, False and Unknown.
    """

    type: str
    """The aspect: Available, Progressing, Degraded, Upgradeable, sometimes Disabled."""

    status: str
    """Whether the condition holds: True, False, or Unknown."""

    last_transition_time: datetime
    """When the status last changed. A new reason or message alone does not change it."""

    reason: str = always("")
    """The reason of the status, one CamelCase word for programs."""

    message: str = always("")
    """The reason for people, with details; may have several lines."""


ClusterStatusConditions = Annotated[tuple[ClusterStatusCondition, ...], list_map("type")]


class OperandVersion(Part):
    """The version of one operand."""

    name: str
    """The operand's name; `operator` is the operator itself."""

    version: str
    """The version that runs everywhere; during a roll-out this is still the old one."""


class ObjectReference(Part):
    """An object, or all objects of a kind, with more information about an operator."""

    group: str
    """The API group; empty for the core group."""

    resource: str
    """The plural name of the kind in that group, in lower case."""

    namespace: str | None = None
    """The object's namespace; absent for a cluster-scoped one."""

    name: str
    """The object's name; empty for all objects in the namespace."""


class ClusterOperatorSpec(Part):
    """Empty: an operator is configured by its own kinds."""


class ClusterOperatorStatus(Part):
    """The operator's report."""

    conditions: ClusterStatusConditions = ()
    """The operator's health, one condition per aspect."""

    versions: tuple[OperandVersion, ...] = ()
    """The versions of the operands. An update is complete when all have reached the versions of the
    release."""

    related_objects: tuple[ObjectReference, ...] = ()
    """The objects to look at, or to collect, if something is wrong with the operator."""

    extension: Annotated[dict[str, Any] | None, NULLABLE, OPAQUE] = None
    """Anything else that the operator reports, in its own format."""


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
    """The operator's report."""


CLUSTER_OPERATORS = CustomResource(
    group="config.openshift.io",
    categories=(CATEGORY,),
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
        condition_column("Degraded", "What is wrong, if anything.", show="message", name="Message"),
    ),
    profiles=ALL_PROFILES,
)
