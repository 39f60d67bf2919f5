"""The kinds of operators that a catalog offers: `operators.coreos.com/v1alpha1`."""

from quarterdeck.api.operators_v1alpha1.catalog_source import (
    CATALOG_SOURCES,
    CatalogSource,
    CatalogSourceSpec,
    CatalogSourceStatus,
)
from quarterdeck.api.operators_v1alpha1.cluster_service_version import (
    CLUSTER_SERVICE_VERSIONS,
    ClusterServiceVersion,
    ClusterServiceVersionSpec,
    ClusterServiceVersionStatus,
    InstallMode,
    InstallStrategy,
    NamedDeployment,
    OwnedDefinition,
    Permissions,
)
from quarterdeck.api.operators_v1alpha1.install_plan import (
    INSTALL_PLANS,
    InstallPlan,
    InstallPlanSpec,
    InstallPlanStatus,
)
from quarterdeck.api.operators_v1alpha1.subscription import (
    SUBSCRIPTIONS,
    UPGRADE_WARNING,
    ConfigEntry,
    InstallPlanReference,
    Subscription,
    SubscriptionSpec,
    SubscriptionStatus,
)

__all__ = [
    "CATALOG_SOURCES",
    "CLUSTER_SERVICE_VERSIONS",
    "INSTALL_PLANS",
    "SUBSCRIPTIONS",
    "UPGRADE_WARNING",
    "CatalogSource",
    "CatalogSourceSpec",
    "CatalogSourceStatus",
    "ClusterServiceVersion",
    "ClusterServiceVersionSpec",
    "ClusterServiceVersionStatus",
    "ConfigEntry",
    "InstallMode",
    "InstallPlan",
    "InstallPlanReference",
    "InstallPlanSpec",
    "InstallPlanStatus",
    "InstallStrategy",
    "NamedDeployment",
    "OwnedDefinition",
    "Permissions",
    "Subscription",
    "SubscriptionSpec",
    "SubscriptionStatus",
]
