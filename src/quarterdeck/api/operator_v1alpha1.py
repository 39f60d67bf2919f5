"""How operators themselves are configured: `operator.openshift.io/v1alpha1`."""

from enum import StrEnum
from typing import Annotated

from quarterdeck.api.custom_resource import SELF_MANAGED, Column, CustomResource
from quarterdeck.api.meta import ObjectMeta, Part, TypedObject, always
from quarterdeck.api.schema import Rule, default, one_of, rules


class LogLevel(StrEnum):
    """How much an operator logs, from least to most; the empty one means Normal."""

    UNSET = ""
    NORMAL = "Normal"
    DEBUG = "Debug"
    TRACE = "Trace"
    TRACE_ALL = "TraceAll"


SINGLETON = Rule(
    "self.metadata.name == 'cluster'",
    "ClusterVersionOperator is a singleton; the .metadata.name field must be 'cluster'",
)
ONLY_INCREASES = Rule("self >= oldSelf", "observedGeneration must only increase")


class ClusterVersionOperatorSpec(Part):
    """How the cluster version operator is to run."""

    operator_log_level: Annotated[str | None, one_of(LogLevel), default("Normal")] = None
    """How much the cluster version operator logs. A change takes effect at once, without a
    restart. Each level has the lines of those before it.

    - Normal: the outcome of each sync, and every change made to the cluster.
    - Debug: each decision, and why a manifest was skipped.
    - Trace: each request to the API server, with its status and duration.
    - TraceAll: the bodies of requests too, but never secrets or tokens.
    """


class ClusterVersionOperatorStatus(Part):
    """What the cluster version operator has taken over from the spec."""

    observed_generation: Annotated[int | None, rules(ONLY_INCREASES)] = None
    """The `metadata.generation` whose log level is in effect. Below the object's, a change is still
    to come."""


class ClusterVersionOperator(TypedObject):
    """The configuration of the cluster version operator. There is one, named `cluster`."""

    api_version: str = always("operator.openshift.io/v1alpha1")
    kind: str = always("ClusterVersionOperator")
    metadata: ObjectMeta

    spec: ClusterVersionOperatorSpec
    """How the cluster version operator is to run."""

    status: ClusterVersionOperatorStatus = ClusterVersionOperatorStatus()
    """What the cluster version operator has taken over from the spec."""


CLUSTER_VERSION_OPERATORS = CustomResource(
    group="operator.openshift.io",
    version="v1alpha1",
    kind="ClusterVersionOperator",
    plural="clusterversionoperators",
    namespaced=False,
    type=ClusterVersionOperator,
    short_names=("cvo",),
    columns=(
        Column("Log-Level", ".spec.operatorLogLevel", "How much is asked to be logged."),
        Column("Generation", ".metadata.generation", "The newest change.", "integer"),
        Column("Observed", ".status.observedGeneration", "The change in effect.", "integer"),
    ),
    rules=(SINGLETON,),
    # Not for hosted clusters: there, the log level is for those who run the control plane.
    profiles=SELF_MANAGED,
    feature_gate="ClusterVersionOperatorConfiguration",
)
