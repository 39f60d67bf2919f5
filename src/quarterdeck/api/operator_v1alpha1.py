"""The configuration of operators: `operator.openshift.io/v1alpha1`."""

from enum import StrEnum
from typing import Annotated

from quarterdeck.api.custom_resource import CATEGORY, SELF_MANAGED, Column, CustomResource
from quarterdeck.api.meta import ObjectMeta, Part, TypedObject, always
from quarterdeck.api.schema import ValidationRule, default, one_of, rules


class LogLevel(StrEnum):
    """How much an operator logs, from least to most; empty means Normal."""

    UNSET = ""
    NORMAL = "Normal"
    DEBUG = "Debug"
    TRACE = "Trace"
    TRACE_ALL = "TraceAll"


SINGLETON = ValidationRule(
    "self.metadata.name == 'cluster'",
    "ClusterVersionOperator is a singleton; the .metadata.name field must be 'cluster'",
)
ONLY_INCREASES = ValidationRule("self >= oldSelf", "observedGeneration must only increase")


class ClusterVersionOperatorSpec(Part):
    """The configuration of the cluster version operator."""

    operator_log_level: Annotated[str | None, one_of(LogLevel), default("Normal")] = None
    """How much the cluster version operator logs. A change takes effect at once, without a restart.
    Each level includes the lines of the levels before it.

    - Normal: the outcome of each sync, and every change made to the cluster.
    - Debug: each decision, and why a manifest was skipped.
    - Trace: each request to the API server, with its status and duration.
    - TraceAll: the bodies of requests too, but never secrets or tokens.
    """


class ClusterVersionOperatorStatus(Part):
    """Which configuration is in effect."""

    observed_generation: Annotated[int | None, rules(ONLY_INCREASES)] = None
    """The `metadata.generation` whose log level is in effect. If it is below the object's, a change
    is pending."""


class ClusterVersionOperator(TypedObject):
    """The configuration of the cluster version operator. There is one, named `cluster`."""

    api_version: str = always("operator.openshift.io/v1alpha1")
    kind: str = always("ClusterVersionOperator")
    metadata: ObjectMeta

    spec: ClusterVersionOperatorSpec
    """The configuration of the cluster version operator."""

    status: ClusterVersionOperatorStatus = ClusterVersionOperatorStatus()
    """Which configuration is in effect."""


CLUSTER_VERSION_OPERATORS = CustomResource(
    group="operator.openshift.io",
    categories=(CATEGORY,),
    version="v1alpha1",
    kind="ClusterVersionOperator",
    plural="clusterversionoperators",
    namespaced=False,
    type=ClusterVersionOperator,
    short_names=("cvo",),
    columns=(
        Column("Log-Level", ".spec.operatorLogLevel", "The configured log level."),
        Column("Generation", ".metadata.generation", "The latest generation.", "integer"),
        Column("Observed", ".status.observedGeneration", "The generation in effect.", "integer"),
    ),
    rules=(SINGLETON,),
    # Not for hosted clusters: there the administrators of the management cluster set the log level.
    profiles=SELF_MANAGED,
    feature_gate="ClusterVersionOperatorConfiguration",
)
