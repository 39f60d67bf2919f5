"""ClusterServiceVersion: one version of an operator, with what it needs to run."""

from collections.abc import Mapping
from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.custom_resource import CATEGORY, SELF_MANAGED, Column, CustomResource
from quarterdeck.api.meta import Object, Part, TypedObject, always
from quarterdeck.api.schema import OPAQUE, kubernetes_type, number


class NamedDeployment(Part):
    """A Deployment of the operator."""

    name: str
    """The name of the Deployment."""

    label: Mapping[str, str] = {}
    """Labels of the Deployment itself."""

    spec: Annotated[Object, kubernetes_type("DeploymentSpec")]
    """The Deployment's spec, before the configuration of the Subscription."""


class Permissions(Part):
    """Rights of a ServiceAccount of the operator."""

    service_account_name: str
    """The ServiceAccount, which is created in the operator's namespace."""

    rules: tuple[Annotated[Object, kubernetes_type("PolicyRule")], ...]
    """The RBAC rules."""


class InstallStrategyDetails(Part):
    """What is created to run the operator."""

    deployments: tuple[NamedDeployment, ...]
    """The Deployments."""

    permissions: tuple[Permissions, ...] = ()
    """Rights in the namespaces that the operator watches."""

    cluster_permissions: tuple[Permissions, ...] = ()
    """Rights in the whole cluster."""


class InstallStrategy(Part):
    """How the operator is installed."""

    strategy: str
    """Always `deployment`."""

    spec: InstallStrategyDetails | None = None
    """What is created to run the operator."""


class InstallMode(Part):
    """Whether the operator works with a kind of OperatorGroup."""

    type: str
    """OwnNamespace, SingleNamespace, MultiNamespace or AllNamespaces."""

    supported: bool
    """Whether the operator supports it."""


class OwnedDefinition(Part):
    """A CustomResourceDefinition that the operator serves or needs."""

    name: str
    """The name of the definition, `plural.group`."""

    version: str
    """The version of the kind."""

    kind: str
    """The kind."""


class Definitions(Part):
    """The CustomResourceDefinitions of the operator."""

    owned: tuple[Annotated[OwnedDefinition, OPAQUE], ...] = ()
    """Those that the operator serves."""

    required: tuple[Annotated[OwnedDefinition, OPAQUE], ...] = ()
    """Those of other operators that it needs."""


class ClusterServiceVersionSpec(Part):
    """One version of an operator. Fields that are not listed here are kept as they are."""

    display_name: str
    """The operator's name for people."""

    version: str | None = None
    """The semantic version."""

    replaces: str | None = None
    """The ClusterServiceVersion that this one replaces."""

    skips: tuple[str, ...] = ()
    """ClusterServiceVersions that this one replaces too, and that need not be installed before."""

    min_kube_version: str | None = None
    """The lowest version of Kubernetes that the operator supports."""

    install: InstallStrategy
    """How the operator is installed."""

    install_modes: tuple[InstallMode, ...] = ()
    """The kinds of OperatorGroups with which the operator works."""

    customresourcedefinitions: Definitions = Definitions()
    """The CustomResourceDefinitions that the operator serves, and those that it needs."""

    annotations: Mapping[str, str] = {}
    """Annotations of the operator's description; not used."""

    labels: Mapping[str, str] = {}
    """Labels of the operator's description; not used."""


class ClusterServiceVersionStatus(Part):
    """The state of the installation."""

    phase: str | None = None
    """Pending, InstallReady, Installing, Succeeded, Failed, Replacing or Deleting."""

    reason: str | None = None
    """The reason of the phase, one CamelCase word for programs."""

    message: str | None = None
    """The reason for people, with details."""

    installed_as: str | None = None
    """The ServiceAccount of the OperatorGroup as which it was installed last. While it is set,
    nothing is installed without an OperatorGroup. Absent if the operator installed it itself."""

    observed_generation: Annotated[int | None, number(minimum=0)] = None
    """The `metadata.generation` that was last acted on."""

    conditions: Conditions = ()
    """The conditions of the installation. The only type is Succeeded."""


class ClusterServiceVersion(TypedObject):
    """One version of an operator, installed in a namespace."""

    api_version: str = always("operators.coreos.com/v1alpha1")
    kind: str = always("ClusterServiceVersion")

    spec: Annotated[ClusterServiceVersionSpec, OPAQUE]
    """One version of an operator."""

    status: ClusterServiceVersionStatus = ClusterServiceVersionStatus()
    """The state of the installation."""


CLUSTER_SERVICE_VERSIONS = CustomResource(
    group="operators.coreos.com",
    version="v1alpha1",
    kind="ClusterServiceVersion",
    plural="clusterserviceversions",
    namespaced=True,
    type=ClusterServiceVersion,
    short_names=("csv", "csvs"),
    categories=("olm", CATEGORY),
    columns=(
        Column("Display", ".spec.displayName", "The operator's name for people."),
        Column("Version", ".spec.version", "The semantic version."),
        Column("Release", ".spec.release", "The release of the version."),
        Column("Replaces", ".spec.replaces", "The version that this one replaces."),
        Column("Phase", ".status.phase", "The state of the installation."),
        Column("Message", ".status.message", "The reason of the phase.", priority=1),
    ),
    profiles=SELF_MANAGED,
)
