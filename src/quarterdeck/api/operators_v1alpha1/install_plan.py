"""InstallPlan: one step of a Subscription, from one version of its operator to the next."""

from typing import Annotated

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.custom_resource import CATEGORY, SELF_MANAGED, Column, CustomResource
from quarterdeck.api.meta import Part, TypedObject, always
from quarterdeck.api.schema import items, number


class InstallPlanSpec(Part):
    """The version to install, and whether it is approved."""

    approval: str
    """`Automatic`, or `Manual`: it waits until `approved` is true."""

    approved: bool
    """Whether it may be installed. Set it to true to approve."""

    cluster_service_version_names: Annotated[tuple[str, ...], items(min_items=1, max_items=1)]
    """The ClusterServiceVersion to install; always one."""

    source: str | None = None
    """The CatalogSource that has the version."""

    source_namespace: str | None = None
    """The namespace of the CatalogSource."""

    replaces: str | None = None
    """The ClusterServiceVersion that was installed when this was planned. Absent at the first
    installation."""

    bundle_digest: str | None = None
    """The SHA-256 of the bundle. If the catalog's bundle changes, the InstallPlan is replaced, and
    needs approval again."""


class InstallPlanStatus(Part):
    """The state of the InstallPlan."""

    phase: str | None = None
    """RequiresApproval, Installing, Complete or Failed."""

    message: str | None = None
    """The reason of the phase, for people."""

    installed_as: str | None = None
    """The ServiceAccount of the OperatorGroup as which it was carried out. Absent if the operator
    did so itself."""

    observed_generation: Annotated[int | None, number(minimum=0)] = None
    """The `metadata.generation` that was last acted on."""

    conditions: Conditions = ()
    """The conditions of the InstallPlan. The only type is Installed."""


class InstallPlan(TypedObject):
    """One step of a Subscription, from one version of its operator to the next."""

    api_version: str = always("operators.coreos.com/v1alpha1")
    kind: str = always("InstallPlan")

    spec: InstallPlanSpec
    """The version to install, and whether it is approved."""

    status: InstallPlanStatus = InstallPlanStatus()
    """The state of the InstallPlan."""


INSTALL_PLANS = CustomResource(
    group="operators.coreos.com",
    version="v1alpha1",
    kind="InstallPlan",
    plural="installplans",
    namespaced=True,
    type=InstallPlan,
    short_names=("ip",),
    categories=("olm", CATEGORY),
    columns=(
        Column("CSV", ".spec.clusterServiceVersionNames[0]", "The version to install."),
        Column("Approval", ".spec.approval", "Automatic or Manual."),
        Column("Approved", ".spec.approved", "Whether it may be installed.", "boolean"),
        Column("Phase", ".status.phase", "The state of the InstallPlan."),
    ),
    profiles=SELF_MANAGED,
)
