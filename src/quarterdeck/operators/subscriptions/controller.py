"""Sets up the operator: catalogs, Subscriptions, InstallPlans, ClusterServiceVersions, groups."""

from datetime import datetime

from quarterdeck.api.meta import CRDS, Key
from quarterdeck.api.operators_v1 import OPERATOR_GROUPS
from quarterdeck.api.operators_v1alpha1 import (
    CATALOG_SOURCES,
    CLUSTER_SERVICE_VERSIONS,
    INSTALL_PLANS,
    SUBSCRIPTIONS,
    CatalogSource,
    ClusterServiceVersion,
    InstallPlan,
)
from quarterdeck.controller import Manager, Watch
from quarterdeck.controller.metadata import controller_of
from quarterdeck.operators.subscriptions.catalogs import Catalogs
from quarterdeck.operators.subscriptions.group_status import add_group_status
from quarterdeck.operators.subscriptions.install.controller import Installer
from quarterdeck.operators.subscriptions.install.reports import ConfigReports
from quarterdeck.operators.subscriptions.install.targets import Targets
from quarterdeck.operators.subscriptions.install.writers import OURS, Impersonated, writers_of
from quarterdeck.operators.subscriptions.names import REPLACES, SUBSCRIPTION, namespace_of
from quarterdeck.operators.subscriptions.plans import Plans
from quarterdeck.operators.subscriptions.settings import Settings
from quarterdeck.operators.subscriptions.subscribe import Subscriber, package_index
from quarterdeck.status import Report, Reporter, all_of, degraded, failing, standard_conditions

CLUSTER_OPERATOR = "operator-lifecycle-manager"


def setup(manager: Manager, settings: Settings) -> None:
    """Add the controllers of the operator, and its reporter."""
    by_namespace = {"namespace": namespace_of}
    sources = manager.objects(CATALOG_SOURCES, writes=["status"])
    subscriptions = manager.objects(
        SUBSCRIPTIONS, indexes={**by_namespace, "package": package_index}, writes=["status"]
    )
    plans = manager.objects(
        INSTALL_PLANS,
        indexes={**by_namespace, "owner": _owner_uid, "account": _with_account},
        writes=["create", "patch", "delete", "status"],
    )
    csvs = manager.objects(
        CLUSTER_SERVICE_VERSIONS,
        indexes={
            **by_namespace,
            "subscription": _subscription_of,
            "replaces": _replaced_by,
            "account": _with_account,
        },
        writes=["create", "patch", "delete", "status", "finalizer"],
    )
    groups = manager.objects(OPERATOR_GROUPS, indexes=by_namespace, writes=["status"])
    targets = Targets(manager, groups, csvs, plans)
    add_group_status(manager, targets)
    definitions = manager.objects(CRDS, OURS, writes=["ensure"])
    writers = writers_of(manager, csvs)
    impersonated = Impersonated(manager.client, manager.field_manager, writers)
    reports = ConfigReports()

    def catalogs_changed() -> None:
        subscriber.wake_all()
        for plan in plans.all():
            installs.controller.wake(Key(plan.metadata.namespace, plan.metadata.name))

    catalogs = Catalogs(manager, settings, sources, catalogs_changed)
    subscriber = Subscriber(manager, subscriptions, plans, csvs, sources, catalogs, reports)
    installs = Plans(
        manager,
        writers,
        impersonated,
        targets,
        plans,
        subscriptions,
        definitions,
        subscriber.find_bundle,
    )
    Installer(
        manager,
        writers,
        impersonated,
        targets,
        subscriptions,
        plans,
        definitions,
        reports,
        subscriber.controller.wake,
    )

    def health(_now: datetime) -> Report:
        own = [one for one in sources.all() if one.metadata.namespace == manager.home.namespace]
        return report(own)

    Reporter(manager, CLUSTER_OPERATOR, health, [Watch(sources)])


def report(sources: list[CatalogSource]) -> Report:
    """The operator's report: Degraded while a catalog of its own namespace cannot be used.

    What other namespaces have is the matter of their owners.
    """
    conditions = standard_conditions(degraded("CatalogsUnusable", failing(sources, "Ready")))
    return Report(
        conditions=conditions,
        related_objects=tuple(
            all_of(kind)
            for kind in (SUBSCRIPTIONS, CLUSTER_SERVICE_VERSIONS, INSTALL_PLANS, CATALOG_SOURCES)
        ),
        at_release_version=True,
    )


def _subscription_of(csv: ClusterServiceVersion) -> list[str]:
    return _named_in(csv, SUBSCRIPTION)


def _replaced_by(csv: ClusterServiceVersion) -> list[str]:
    return _named_in(csv, REPLACES)


def _named_in(csv: ClusterServiceVersion, annotation: str) -> list[str]:
    name = csv.metadata.annotations.get(annotation)
    return [f"{csv.metadata.namespace}/{name}"] if name else []


def _with_account(obj: ClusterServiceVersion | InstallPlan) -> list[str]:
    return [obj.metadata.namespace] if obj.status.installed_as else []


def _owner_uid(plan: InstallPlan) -> list[str]:
    owner = controller_of(plan)
    return [owner.uid] if owner else []
