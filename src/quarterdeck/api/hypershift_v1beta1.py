"""Clusters whose control plane runs in a management cluster: `hypershift.openshift.io/v1beta1`.

Upstream's kinds have many more fields. Ours name those that this project reads; all others are kept
as they are.
"""

from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.custom_resource import AGE, CATEGORY, Column, CustomResource, condition_column
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.operator_v1alpha1 import LogLevel
from quarterdeck.api.schema import OPAQUE, default, number, one_of, text

SECRET_NAME = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"  # noqa: S105 - the pattern of a name


class HostedClusterVersionOperator(Part):
    """The configuration of the cluster version operator of a hosted cluster."""

    operator_log_level: Annotated[str | None, one_of(LogLevel), default("Normal")] = None
    """How much the cluster version operator logs. A change takes effect without a restart. Each
    level includes the lines of the levels before it: Normal, Debug, Trace, TraceAll. Empty means
    Normal."""


class OperatorConfiguration(Part):
    """The configuration of the operators of a hosted cluster."""

    cluster_version_operator: Annotated[HostedClusterVersionOperator | None, OPAQUE] = None
    """The configuration of the cluster version operator."""


class HostedRelease(Part):
    """The release of a hosted cluster."""

    image: Annotated[str, text(min_length=1, max_length=512)]
    """The image of the release."""

    version: Annotated[str | None, text(min_length=1, max_length=128)] = None
    """The version of the release; by default the tag of the image. Its payload is applied to the
    hosted cluster."""


class SecretReference(Part):
    """A Secret in the namespace of the object that names it."""

    name: Annotated[str, text(max_length=253, pattern=SECRET_NAME)]
    """The name of the Secret."""


class HostedClusterSpec(Part):
    """The desired hosted cluster."""

    release: Annotated[HostedRelease, OPAQUE]
    """The release of the hosted cluster. A change updates the cluster."""

    kubeconfig_secret: SecretReference | None = None
    """The Secret with the kubeconfig of the hosted cluster, in its key `kubeconfig`. It is in the
    namespace of the HostedCluster."""

    operator_configuration: Annotated[OperatorConfiguration | None, OPAQUE] = None
    """The configuration of operators of the hosted cluster. It is ignored unless the feature gate
    ClusterVersionOperatorConfiguration is enabled in the management cluster."""


class HostedStatus(Part):
    """The state of a hosted cluster or of its control plane."""

    observed_generation: Annotated[int | None, number(minimum=0)] = None
    """The `metadata.generation` that was last acted on."""

    conditions: Conditions = ()
    """The conditions: ValidConfiguration, OperatorConfigurationApplied and Available."""


class HostedCluster(TypedObject):
    """A cluster whose control plane runs as pods in this cluster."""

    api_version: str = always("hypershift.openshift.io/v1beta1")
    kind: str = always("HostedCluster")

    spec: Annotated[HostedClusterSpec, OPAQUE]
    """The desired hosted cluster."""

    status: Annotated[HostedStatus, OPAQUE] = HostedStatus()
    """The state of the hosted cluster."""


class HostedControlPlaneSpec(Part):
    """The desired control plane. The hosted operator writes it from the HostedCluster."""

    release_image: Annotated[str, text(min_length=1, max_length=512)]
    """The image of the release."""

    release_version: Annotated[str | None, text(min_length=1, max_length=128)] = None
    """The version of the release."""

    operator_configuration: Annotated[OperatorConfiguration | None, OPAQUE] = None
    """The configuration of operators, as the HostedCluster has it."""


class HostedControlPlane(TypedObject):
    """The control plane of a hosted cluster, in a namespace of its own."""

    api_version: str = always("hypershift.openshift.io/v1beta1")
    kind: str = always("HostedControlPlane")

    spec: Annotated[HostedControlPlaneSpec, OPAQUE]
    """The desired control plane."""

    status: Annotated[HostedStatus, OPAQUE] = HostedStatus()
    """The state of the control plane."""


_LEVEL = Column(
    "Log-Level",
    ".spec.operatorConfiguration.clusterVersionOperator.operatorLogLevel",
    "The log level of the cluster version operator.",
)
_AVAILABLE = condition_column("Available", "Whether the control plane runs.")

HOSTED_CLUSTERS = CustomResource(
    group="hypershift.openshift.io",
    categories=(CATEGORY,),
    version="v1beta1",
    kind="HostedCluster",
    plural="hostedclusters",
    namespaced=True,
    type=HostedCluster,
    short_names=("hc", "hcs"),
    columns=(
        Column("Release", ".spec.release.image", "The image of the release."),
        _LEVEL,
        _AVAILABLE,
        condition_column(
            "ValidConfiguration", "What is wrong with the spec.", show="message", name="Message"
        ),
        AGE,
    ),
)

HOSTED_CONTROL_PLANES = CustomResource(
    group="hypershift.openshift.io",
    categories=(CATEGORY,),
    version="v1beta1",
    kind="HostedControlPlane",
    plural="hostedcontrolplanes",
    namespaced=True,
    type=HostedControlPlane,
    short_names=("hcp", "hcps"),
    columns=(
        Column("Version", ".spec.releaseVersion", "The version of the release."),
        _LEVEL,
        _AVAILABLE,
        AGE,
    ),
)
