"""The controller of Subscriptions: decides the next version, and writes its InstallPlan."""

from collections.abc import Iterable, Mapping

from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1alpha1 import (
    SUBSCRIPTIONS,
    CatalogSource,
    ClusterServiceVersion,
    InstallPlan,
    Subscription,
)
from quarterdeck.controller import DONE, Controller, Manager, Objects, Result, Watch, to_owner
from quarterdeck.controller.metadata import key_of, owned_by
from quarterdeck.controller.watch import spec_changed
from quarterdeck.kube import AlreadyExists
from quarterdeck.operators.subscriptions.announce import faults_changed, record
from quarterdeck.operators.subscriptions.catalog.model import Bundle, Catalog
from quarterdeck.operators.subscriptions.catalogs import Catalogs
from quarterdeck.operators.subscriptions.install.reports import ConfigReports
from quarterdeck.operators.subscriptions.names import SUBSCRIPTION, plan_name
from quarterdeck.operators.subscriptions.resolve import (
    REQUIRED_MISSING,
    Decision,
    InstallStep,
    ObservedSubscription,
    current_csv,
    decide,
)
from quarterdeck.operators.subscriptions.subscription_status import (
    SubscriptionProgress,
    desired_status,
)


class Subscriber:
    """Reconciles Subscriptions."""

    def __init__(
        self,
        manager: Manager,
        subscriptions: Objects[Subscription],
        plans: Objects[InstallPlan],
        csvs: Objects[ClusterServiceVersion],
        sources: Objects[CatalogSource],
        catalogs: Catalogs,
        reports: ConfigReports,
    ) -> None:
        self._manager = manager
        self._subscriptions = subscriptions
        self._plans = plans
        self._csvs = csvs
        self._sources = sources
        self._reports = reports
        self._catalogs = catalogs
        self._requiring: set[Key] = set()
        """The Subscriptions that wait for another one's version."""
        watches = [
            Watch(subscriptions),
            Watch(subscriptions, self._siblings, spec_changed),
            Watch(plans, to_owner(SUBSCRIPTIONS)),
            Watch(csvs, self._of_csv, csv_changed),
        ]
        self.controller = Controller("subscription", self._reconcile, watches, workers=8)
        manager.add(self.controller)

    def wake_all(self) -> None:
        """Reconcile all Subscriptions: a catalog has changed."""
        for subscription in self._subscriptions.all():
            self.controller.wake(key_of(subscription))

    def _siblings(self, subscription: Subscription) -> Iterable[Key]:
        """The Subscriptions for the same package in the namespace."""
        (value,) = package_index(subscription)
        return [key_of(one) for one in self._subscriptions.by_index("package", value)]

    def _of_csv(self, csv: ClusterServiceVersion) -> Iterable[Key]:
        """The Subscription of a CSV, and those that wait for the version of another one.

        All of the namespace if it has none, or is being deleted: another Subscription may take over
        a CSV without one, or wait for the name of a deleted one.
        """
        namespace, name = csv.metadata.namespace, csv.metadata.annotations.get(SUBSCRIPTION)
        own = Key(namespace, name) if name else None
        if own and csv.metadata.deletion_timestamp is None and self._subscriptions.get(own):
            return (own, *(key for key in self._requiring if key.namespace == namespace))
        return [key_of(one) for one in self._subscriptions.by_index("namespace", namespace)]

    async def _reconcile(self, key: Key) -> Result:
        subscription = self._subscriptions.get(key)
        self._requiring.discard(key)
        if subscription is None or subscription.metadata.deletion_timestamp is not None:
            return DONE
        catalogs = self._catalogs_for(subscription)
        if catalogs is None:
            return DONE  # A catalog is not read yet; that wakes the key.
        decision = decide(self._observed(subscription, catalogs))
        if decision.failure is not None and decision.failure.reason == REQUIRED_MISSING:
            self._requiring.add(key)
        if decision.adopt is not None:
            annotations = {SUBSCRIPTION: key.name}
            await self._csvs.patch(decision.adopt, {"metadata": {"annotations": annotations}})
            return DONE
        plan = await self._plan(subscription, decision)
        current = decision.current
        report = self._reports.get(key_of(current)) if current is not None else None
        progress = SubscriptionProgress(decision=decision, plan=plan, report=report)
        status = desired_status(subscription, progress, self._manager.now())
        if await self._subscriptions.set_status(subscription, status):
            before = subscription.status.conditions
            changes = faults_changed(before, status.conditions, harmless=["InstallPlanPending"])
            record(self._manager.events, subscription, changes, "Reconcile")
        return DONE

    def _observed(
        self, subscription: Subscription, catalogs: Mapping[Key, Catalog | None]
    ) -> ObservedSubscription:
        key = key_of(subscription)
        siblings = self._subscriptions.by_index("package", *package_index(subscription))
        csvs = _kept(self._csvs.by_index("subscription", str(key)))
        if not csvs:
            siblings = self._subscriptions.by_index("namespace", key.namespace)
            csvs = _kept(self._csvs.by_index("namespace", key.namespace))
        return ObservedSubscription(
            subscription=subscription,
            siblings=[one for one in siblings if one.metadata.name != key.name],
            csvs=csvs,
            catalogs=catalogs,
            version_of=lambda package: self._version_of(key.namespace, package),
        )

    def _version_of(self, namespace: str, package: str) -> str:
        """The version of the package that is installed in the namespace; empty if there is none."""
        for one in self._subscriptions.by_index("package", f"{namespace}/{package}"):
            csvs = _kept(self._csvs.by_index("subscription", str(key_of(one))))
            current = current_csv(one, csvs)
            if current is not None:
                return current.spec.version or ""
        return ""

    def _catalogs_for(self, subscription: Subscription) -> dict[Key, Catalog | None] | None:
        """The catalogs that the Subscription may use; None if one is not read yet."""
        found: dict[Key, Catalog | None] = {}
        for source in self._sources.all():
            key = key_of(source)
            if not self._may_use(subscription, key):
                continue
            state = self._catalogs.get(key)
            if state is None:
                return None
            found[key] = state.catalog
        return found

    def _may_use(self, subscription: Subscription, source: Key) -> bool:
        """Whether the Subscription names the CatalogSource, or may find it by itself.

        Other namespaces' catalogs are their own matter, except those of the operator's namespace.
        """
        spec = subscription.spec
        namespaces = {subscription.metadata.namespace, self._manager.home.namespace}
        if spec.source_namespace:
            namespaces &= {spec.source_namespace}
        return source.namespace in namespaces and spec.source in (None, "", source.name)

    def _own_plans(self, subscription: Subscription) -> list[InstallPlan]:
        meta = subscription.metadata
        found = self._plans.by_index("owner", meta.uid)
        return [plan for plan in found if plan.metadata.namespace == meta.namespace]

    async def _plan(self, subscription: Subscription, decision: Decision) -> InstallPlan | None:
        """The InstallPlan of the next step, or of the installed version; others are removed."""
        step = decision.step
        wanted = _wanted_name(subscription, step) if step is not None else ""
        installed = decision.current.metadata.name if decision.current else ""
        # While nothing can be decided, or the installed version does not work, plans stay.
        keeps = decision.failure is not None or decision.waits
        last: InstallPlan | None = None
        plans = self._own_plans(subscription)
        for plan in plans:
            if is_being_completed(plan, installed):
                return plan  # It wakes the key; a later step would take it for an old one.
        for plan in plans:
            is_done = plan.status.phase == "Complete"
            is_current = plan.spec.cluster_service_version_names[:1] == (installed,)
            if plan.metadata.name == wanted:
                if is_done:  # Its result is gone: it has to be carried out again.
                    await self._plans.delete(plan)
                else:
                    last = plan
            elif not is_done and not is_current and not keeps:
                await self._plans.delete(plan)  # Its version is no longer the next one.
            elif (not is_done and keeps) or (is_current and last is None):
                last = plan
        if step is None:
            return last
        if last is not None and last.metadata.name == wanted:
            return await self._approved(subscription, last)
        return await self._created(subscription, step, wanted)

    async def _created(
        self, subscription: Subscription, step: InstallStep, name: str
    ) -> InstallPlan | None:
        try:
            return await self._plans.create(desired_plan(subscription, step, name))
        except AlreadyExists:
            return None  # It is being deleted, or not in the cache yet; both wake the key.

    async def _approved(self, subscription: Subscription, plan: InstallPlan) -> InstallPlan:
        """The plan; approved if the Subscription no longer asks for approval."""
        if plan.spec.approved or subscription.spec.install_plan_approval == "Manual":
            return plan
        return await self._plans.patch(plan, {"spec": {"approved": True, "approval": "Automatic"}})

    def find_bundle(self, plan: InstallPlan, subscription: Subscription) -> Bundle | str | None:
        """The bundle of a plan, or why there is none; None while the catalog is not read yet.

        A user who can write InstallPlans gets nothing by one that the Subscription would not get.
        """
        source = Key(plan.spec.source_namespace or "", plan.spec.source or "")
        if not self._may_use(subscription, source):
            return f"the Subscription may not use the CatalogSource {source}; delete this plan"
        if self._sources.get(source) is None:
            return f"the CatalogSource {source} is gone"
        state = self._catalogs.get(source)
        if state is None:
            return None
        name = next(iter(plan.spec.cluster_service_version_names), "")
        packages = state.catalog.packages if state.catalog else {}
        package = packages.get(subscription.spec.package_name)
        bundle = package.bundles.get(name) if package is not None else None
        if bundle is not None and bundle.digest == plan.spec.bundle_digest:
            return bundle
        return f"the CatalogSource {source} does not have {name} as it was when this was planned"


def package_index(subscription: Subscription) -> list[str]:
    """The namespace and package of a Subscription, for an index."""
    return [f"{subscription.metadata.namespace}/{subscription.spec.package_name}"]


def is_being_completed(plan: InstallPlan, installed: str) -> bool:
    """Whether the version of the plan is there, and only the plan does not say so yet."""
    return (
        plan.spec.cluster_service_version_names[:1] == (installed,)
        and plan.spec.approved
        and plan.status.phase not in ("Complete", "Failed")
    )


def csv_changed(old: ClusterServiceVersion | None, new: ClusterServiceVersion | None) -> bool:
    """Whether a change of a ClusterServiceVersion counts for its Subscription."""
    if old is None or new is None or spec_changed(old, new):
        return True
    was, now = (
        (old.metadata.annotations, old.status.phase),
        (
            new.metadata.annotations,
            new.status.phase,
        ),
    )
    return was != now


def _kept(csvs: Iterable[ClusterServiceVersion]) -> list[ClusterServiceVersion]:
    return [one for one in csvs if one.metadata.deletion_timestamp is None]


def _wanted_name(subscription: Subscription, step: InstallStep) -> str:
    meta = subscription.metadata
    bundle = step.bundle
    return plan_name(
        meta.name,
        meta.uid,
        bundle.name,
        bundle.digest,
        source=step.source,
        replaces=step.replaces,
    )


def desired_plan(subscription: Subscription, step: InstallStep, name: str) -> Object:
    """The InstallPlan of a step; it is approved unless the Subscription asks for approval."""
    manual = subscription.spec.install_plan_approval == "Manual"
    spec: Object = {
        "approval": "Manual" if manual else "Automatic",
        "approved": not manual,
        "clusterServiceVersionNames": [step.bundle.name],
        "source": step.source.name,
        "sourceNamespace": step.source.namespace,
        "bundleDigest": step.bundle.digest,
    }
    if step.replaces:
        spec["replaces"] = step.replaces
    return {"metadata": {"name": name, **owned_by(subscription)}, "spec": spec}
