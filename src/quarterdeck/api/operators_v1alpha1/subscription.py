"""Subscription: an operator from a catalog, kept up to date, with a configuration of its pods."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from quarterdeck.api.conditions import Conditions
from quarterdeck.api.custom_resource import (
    CATEGORY,
    SELF_MANAGED,
    Column,
    CustomResource,
    condition_column,
)
from quarterdeck.api.meta import Object, Part, TypedObject, always
from quarterdeck.api.schema import ValidationRule, items, kubernetes_type, number, rules, text

MAX_ENTRIES = 64
MAX_NAMES = 64
UPGRADE_WARNING = "UpgradeConfigWarning"
"""The condition that says what of the config the next version would break."""


class ConfigEntry(Part):
    """A configuration of the operator's pods. Later entries of the list have precedence."""

    selector: Annotated[Object | None, kubernetes_type("LabelSelector")] = None
    """The Deployments to configure, by the labels of their pod templates in the
    ClusterServiceVersion. Labels that pods get at run time do not count. Absent or empty: all
    Deployments."""

    deployments: Annotated[tuple[str, ...], items(max_items=MAX_NAMES)] = ()
    """The names of the Deployments to configure, of those that the selector matches. Empty: all."""

    containers: Annotated[tuple[str, ...], items(max_items=MAX_NAMES)] = ()
    """The names of the containers that get `env`, `envFrom`, `volumeMounts` and `resources`. Empty:
    all containers, but no init containers."""

    resources: Annotated[Object | None, kubernetes_type("ResourceRequirements")] = None
    """The resources of each container. Present: replaces those of the operator; `{}` removes
    them."""

    node_selector: dict[str, str] | None = None
    """The labels of the nodes for the pods. Present: replaces that of the operator; `{}` removes
    it."""

    tolerations: tuple[Annotated[Object, kubernetes_type("Toleration")], ...] = ()
    """Added to the tolerations of the pods, unless an equal one is there."""

    env: tuple[Annotated[Object, kubernetes_type("EnvVar")], ...] = ()
    """Environment variables of each container. One of the same name is replaced."""

    env_from: tuple[Annotated[Object, kubernetes_type("EnvFromSource")], ...] = ()
    """Sources of environment variables of each container, added unless an equal one is there."""

    volumes: tuple[Annotated[Object, kubernetes_type("Volume")], ...] = ()
    """Volumes of the pods. One of the same name is replaced."""

    volume_mounts: tuple[Annotated[Object, kubernetes_type("VolumeMount")], ...] = ()
    """Mounts of each container. One with the same mount path is replaced."""

    affinity: Annotated[Object | None, kubernetes_type("Affinity")] = None
    """The affinity of the pods. `{}` removes it. An absent part keeps that of the operator, `{}`
    removes the part, and anything else replaces it."""

    annotations: Mapping[str, str] = {}
    """Annotations of the Deployments and of their pods."""


class SubscriptionSpec(Part):
    """The operator to install, its updates, and its configuration."""

    name: Annotated[str | None, text(min_length=1)] = None
    """The package in the catalog."""

    package: Annotated[str | None, text(min_length=1)] = None
    """The same as `name`; give one of the two."""

    channel: str | None = None
    """The channel of the package. Absent: the package's default channel."""

    source: str | None = None
    """The CatalogSource. Absent: the only one that has the package."""

    source_namespace: str | None = None
    """The namespace of the CatalogSource. Absent: the Subscription's own namespace, and then that
    of the operator lifecycle manager."""

    install_plan_approval: str | None = None
    """`Automatic`, the default, or `Manual`: each update waits until its InstallPlan is
    approved."""

    starting_csv: str | None = msgspec.field(default=None, name="startingCSV")
    """The ClusterServiceVersion to install first. Absent: the latest one of the channel."""

    config: Annotated[tuple[ConfigEntry, ...], items(max_items=MAX_ENTRIES)] = ()
    """The configuration of the operator's pods, which stays in effect after updates. The entries
    apply in order."""

    @property
    def package_name(self) -> str:
        """The package, by whichever of the two names it was given."""
        return self.name or self.package or ""


class InstallPlanReference(Part):
    """An InstallPlan of the Subscription."""

    api_version: str | None = None
    """The API group and version of the InstallPlan."""

    kind: str | None = None
    """Always `InstallPlan`."""

    name: str | None = None
    """The InstallPlan's name."""

    namespace: str | None = None
    """The InstallPlan's namespace."""

    uid: str | None = None
    """The InstallPlan's uid."""


class SubscriptionStatus(Part):
    """The state of the Subscription."""

    current_csv: str | None = msgspec.field(default=None, name="currentCSV")
    """The ClusterServiceVersion that is installed, or that the InstallPlan installs."""

    installed_csv: str | None = msgspec.field(default=None, name="installedCSV")
    """The ClusterServiceVersion that is installed."""

    state: str | None = None
    """AtLatestKnown, UpgradePending (an InstallPlan waits or runs), UpgradeAvailable, or
    UpgradeFailed."""

    install_plan_ref: InstallPlanReference | None = None
    """The InstallPlan that waits, runs, or ran last."""

    observed_generation: Annotated[int | None, number(minimum=0)] = None
    """The `metadata.generation` that was last acted on."""

    conditions: Conditions = ()
    """The faults of the Subscription; a condition that is True needs attention. Types:
    ResolutionFailed, ConfigFailure, PodConfigSelectorFailure, UpgradeConfigWarning,
    InstallPlanPending, InstallPlanFailed, CatalogSourcesUnhealthy."""


class Subscription(TypedObject):
    """An operator from a catalog, kept up to date, with a configuration of its pods."""

    api_version: str = always("operators.coreos.com/v1alpha1")
    kind: str = always("Subscription")

    spec: Annotated[
        SubscriptionSpec,
        rules(
            ValidationRule(
                "has(self.name) != has(self.package)",
                "name the package once: give either name or package",
            )
        ),
    ]
    """The operator to install, its updates, and its configuration."""

    status: SubscriptionStatus = SubscriptionStatus()
    """The state of the Subscription."""


SUBSCRIPTIONS = CustomResource(
    group="operators.coreos.com",
    version="v1alpha1",
    kind="Subscription",
    plural="subscriptions",
    namespaced=True,
    type=Subscription,
    short_names=("sub", "subs"),
    categories=("olm", CATEGORY),
    columns=(
        Column("Package", ".spec.name", "The package in the catalog."),
        Column("Source", ".spec.source", "The CatalogSource."),
        Column("Channel", ".spec.channel", "The channel of the package."),
        Column("Installed", ".status.installedCSV", "The installed version."),
        Column("State", ".status.state", "Whether a newer version is known."),
        condition_column("ConfigFailure", "Whether a part of the configuration cannot be applied."),
    ),
    profiles=SELF_MANAGED,
)
