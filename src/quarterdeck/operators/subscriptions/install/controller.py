"""The controller of ClusterServiceVersions: applies what they need, with the configuration.

A reconcile checks what has to be there first (OperatorGroup, definitions), applies accounts, roles
and Deployments, and writes the phase. A newer ClusterServiceVersion takes over the objects that
both have; the older one does nothing from then on, and is deleted when the newer one works.
"""

from collections.abc import Callable, Iterable, Sequence

from quarterdeck.api.config_v1 import Proxy
from quarterdeck.api.meta import Key, Object
from quarterdeck.api.operators_v1 import OperatorGroup
from quarterdeck.api.operators_v1alpha1 import (
    ClusterServiceVersion,
    InstallPlan,
    Subscription,
)
from quarterdeck.controller import DONE, Controller, Finalizer, Manager, Objects, Result, Watch
from quarterdeck.controller.metadata import key_of
from quarterdeck.controller.watch import spec_changed
from quarterdeck.operators.subscriptions.announce import record
from quarterdeck.operators.subscriptions.config.faults import (
    ConfigFault,
    selector_faults,
)
from quarterdeck.operators.subscriptions.install.cluster_proxy import ClusterProxy
from quarterdeck.operators.subscriptions.install.components import Components
from quarterdeck.operators.subscriptions.install.config_objects import ConfigObjects
from quarterdeck.operators.subscriptions.install.deployer import Deployer, deployment_changed
from quarterdeck.operators.subscriptions.install.desired import named_deployments
from quarterdeck.operators.subscriptions.install.needs import Needs
from quarterdeck.operators.subscriptions.install.phase import (
    Phase,
    PhaseResult,
    desired_status,
    phase_changed,
    phase_of_deployments,
    seconds_unchanged,
)
from quarterdeck.operators.subscriptions.install.replacement import being_replaced, replaces
from quarterdeck.operators.subscriptions.install.reports import ConfigReport, ConfigReports
from quarterdeck.operators.subscriptions.install.rights import (
    delete_rights,
)
from quarterdeck.operators.subscriptions.install.targets import Targets
from quarterdeck.operators.subscriptions.install.writers import Impersonated, Writers
from quarterdeck.operators.subscriptions.names import FINALIZER, REPLACES, SUBSCRIPTION, to_csv
from quarterdeck.status import rollout

RETRY_INTERVAL = 30.0
"""Seconds until something that was refused is tried again."""


class Installer:
    """Reconciles ClusterServiceVersions."""

    def __init__(
        self,
        manager: Manager,
        writers: Writers,
        impersonated: Impersonated,
        targets: Targets,
        subscriptions: Objects[Subscription],
        plans: Objects[InstallPlan],
        definitions: Objects[Object],
        reports: ConfigReports,
        on_report: Callable[[Key], None],
    ) -> None:
        """Call `on_report` with the key of a Subscription whose report changed."""
        self._manager = manager
        self._own = writers
        self._csvs = writers.csvs
        self._subscriptions = subscriptions
        self._plans = plans
        self._reports = reports
        self._on_report = on_report
        self._proxy = ClusterProxy(manager)
        self._rolling_out: dict[Key, float] = {}
        self._finalizer = Finalizer(self._csvs, FINALIZER, self._clean_up)
        watches = [
            Watch(self._csvs, self._with_related),
            Watch(subscriptions, self._of_subscription, spec_changed),
            Watch(targets.groups, self._of_namespace),
            Watch(definitions, self._everywhere, _established_changed),
            Watch(targets.namespaces, self._everywhere, _labels_changed),
            Watch(self._proxy.proxies, self._everywhere),
            Watch(writers.deployments, to_csv, deployment_changed),
            *(Watch(kind, to_csv) for kind in writers.parts if kind is not writers.deployments),
        ]
        self.controller = Controller("csv", self._reconcile, watches, workers=8)
        manager.add(self.controller)
        self._config_objects = ConfigObjects(manager, self.controller)
        self._deployer = Deployer(writers, self._proxy, self._config_objects)
        self._needs = Needs(manager, self.controller, definitions)
        self._components = Components(writers, impersonated, targets, plans, self._needs)

    # --- what wakes a key

    def _with_related(self, csv: ClusterServiceVersion) -> Iterable[Key]:
        """The ClusterServiceVersion, and the one that it replaces."""
        own = key_of(csv)
        before = csv.metadata.annotations.get(REPLACES)
        return (own, Key(own.namespace, before)) if before else (own,)

    def _of_subscription(self, subscription: Subscription) -> Iterable[Key]:
        key = key_of(subscription)
        return [key_of(csv) for csv in self._csvs.by_index("subscription", str(key))]

    def _of_namespace(self, group: OperatorGroup) -> Iterable[Key]:
        found = self._csvs.by_index("namespace", group.metadata.namespace)
        return [key_of(csv) for csv in found]

    def _everywhere(self, _obj: Object | Proxy) -> Iterable[Key]:
        return [key_of(csv) for csv in self._csvs.all()]

    # --- reconcile

    async def _reconcile(self, key: Key) -> Result:
        csv = self._csvs.get(key)
        if csv is None:
            self._forget(key)
            return DONE
        if csv.metadata.deletion_timestamp is not None:
            deleting = PhaseResult(
                phase=Phase.DELETING, reason="Deleted", message="its objects are being deleted"
            )
            await self._write(csv, deleting)
            csv = self._csvs.get(key) or csv
        kept = await self._finalizer.add_or_clean_up(csv)
        if kept is None:
            self._forget(key)
            return DONE
        newer = self._replaced_by(kept)
        if newer is not None:
            return await self._give_way(kept, newer)
        found = await self._installed(kept)
        if found is None:
            return DONE  # Something that a decision needs is not read yet; that wakes the key.
        live = self._csvs.get(key) or kept
        if left := self._seconds_unchanged(live, found):
            return Result(requeue_after=left)
        await self._write(live, found)
        again = found.phase in (Phase.FAILED, Phase.INSTALL_READY, Phase.PENDING)
        return Result(requeue_after=RETRY_INTERVAL) if again else DONE

    def _seconds_unchanged(self, csv: ClusterServiceVersion, found: PhaseResult) -> float:
        """The seconds for which the version stays Succeeded, although a roll-out has begun."""
        key, seconds = key_of(csv), seconds_unchanged(csv, found)
        if not seconds:
            self._rolling_out.pop(key, None)
            return 0.0
        now = self._manager.clock()
        return max(0.0, self._rolling_out.setdefault(key, now) + seconds - now)

    def _replaced_by(self, csv: ClusterServiceVersion) -> ClusterServiceVersion | None:
        claims = self._csvs.by_index("replaces", str(key_of(csv)))
        if not claims:
            return None
        plans = self._plans.by_index("namespace", csv.metadata.namespace)
        newer = [
            one
            for one in claims
            if one.metadata.deletion_timestamp is None and replaces(one, csv, plans)
        ]
        return newer[0] if newer else None

    async def _give_way(self, csv: ClusterServiceVersion, newer: ClusterServiceVersion) -> Result:
        self._reports.set(key_of(csv), None)
        if newer.status.phase == Phase.SUCCEEDED:
            await self._csvs.delete(csv)
            return DONE
        await self._write(csv, being_replaced(newer))
        return DONE

    async def _installed(self, csv: ClusterServiceVersion) -> PhaseResult | None:
        """The phase after everything was applied that can be; None if nothing can be decided."""
        subscription = self._subscription(csv)
        config = subscription.spec.config if subscription else ()
        if self._config_objects.unread(key_of(csv), config):
            return None
        ready = await self._components.apply(csv)
        match ready:
            case None:
                return None
            case PhaseResult():
                # Nothing is applied, and yet the config is judged: its faults go with their cause.
                self._report(csv, subscription, self._deployer.faults(csv, config))
                return ready
            case target, writers:
                results = await self._deployer.apply(csv, config, target, writers)
                faults = [fault for one in results for fault in one.faults]
                self._report(csv, subscription, faults)
                return phase_of_deployments(results)

    def _subscription(self, csv: ClusterServiceVersion) -> Subscription | None:
        """The Subscription whose configuration counts; None if it is gone."""
        name = csv.metadata.annotations.get(SUBSCRIPTION)
        found = self._subscriptions.get(Key(csv.metadata.namespace, name)) if name else None
        return None if found is None or found.metadata.deletion_timestamp else found

    def _report(
        self,
        csv: ClusterServiceVersion,
        subscription: Subscription | None,
        faults: Sequence[ConfigFault],
    ) -> None:
        if subscription is None:
            return
        report = ConfigReport(
            generation=subscription.metadata.generation,
            faults=tuple(faults),
            selector_faults=tuple(
                selector_faults(subscription.spec.config, named_deployments(csv))
            ),
        )
        if self._reports.set(key_of(csv), report):
            self._on_report(key_of(subscription))

    async def _write(self, csv: ClusterServiceVersion, result: PhaseResult) -> None:
        status = desired_status(csv, result, self._manager.now())
        if await self._csvs.set_status(csv, status):
            record(self._manager.events, csv, phase_changed(csv.status, result), "Install")

    async def _clean_up(self, csv: ClusterServiceVersion) -> bool:
        await delete_rights(csv, self._own)
        return True

    def _forget(self, key: Key) -> None:
        self._config_objects.forget(key)
        self._needs.forget(key)
        self._deployer.forget(key)
        self._reports.set(key, None)
        self._rolling_out.pop(key, None)


def _established_changed(old: Object | None, new: Object | None) -> bool:
    if old is None or new is None:
        return True
    return rollout.definition(old) != rollout.definition(new)


def _labels_changed(old: Object | None, new: Object | None) -> bool:
    if old is None or new is None:
        return True
    return bool(old["metadata"].get("labels") != new["metadata"].get("labels"))
