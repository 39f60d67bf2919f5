"""The controller of ClusterServiceVersions: applies what they need, with the configuration.

A reconcile checks what has to be there first (OperatorGroup, definitions), applies accounts, roles
and Deployments, and writes the phase. A newer ClusterServiceVersion takes over the objects that
both have; the older one does nothing from then on, and is deleted when the newer one works.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from quarterdeck.api.config_v1 import PROXIES, Proxy
from quarterdeck.api.meta import CONFIG_MAPS, CRDS, NAMESPACES, SECRETS, Key, Object
from quarterdeck.api.operators_v1 import OperatorGroup
from quarterdeck.api.operators_v1alpha1 import (
    ClusterServiceVersion,
    ConfigEntry,
    Subscription,
)
from quarterdeck.controller import (
    DONE,
    Controller,
    Finalizer,
    Manager,
    Objects,
    Result,
    Selection,
    Watch,
)
from quarterdeck.controller.metadata import key_of
from quarterdeck.kube import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from quarterdeck.operators.subscriptions.config.faults import (
    config_faults,
    selector_faults,
)
from quarterdeck.operators.subscriptions.config.merge import Merged, merged
from quarterdeck.operators.subscriptions.config.proxy import proxy_variables
from quarterdeck.operators.subscriptions.config.references import (
    Kind,
    Reference,
    references,
    why_unresolved,
)
from quarterdeck.operators.subscriptions.config.refusals import refused_entries
from quarterdeck.operators.subscriptions.groups import GroupFault, Target, mode_fault, target_of
from quarterdeck.operators.subscriptions.install.desired import (
    desired_accounts,
    desired_deployment,
    desired_roles,
    named_deployments,
)
from quarterdeck.operators.subscriptions.install.phase import (
    DeploymentResult,
    Phase,
    PhaseResult,
    desired_status,
    phase_of_deployments,
)
from quarterdeck.operators.subscriptions.install.reports import ConfigReport, ConfigReports
from quarterdeck.operators.subscriptions.install.requirements import missing_requirements
from quarterdeck.operators.subscriptions.install.writers import Impersonated, Writers
from quarterdeck.operators.subscriptions.names import (
    FINALIZER,
    REPLACES,
    SUBSCRIPTION,
    owned_selector,
    owner_of,
    to_csv,
)
from quarterdeck.status import rollout
from quarterdeck.versions import Version, parse_version

RETRY_INTERVAL = 30.0
"""Seconds until something that was refused is tried again."""


class Installer:
    """Reconciles ClusterServiceVersions."""

    def __init__(
        self,
        manager: Manager,
        writers: Writers,
        csvs: Objects[ClusterServiceVersion],
        subscriptions: Objects[Subscription],
        groups: Objects[OperatorGroup],
        definitions: Objects[Object],
        reports: ConfigReports,
        on_report: Callable[[Key], None],
    ) -> None:
        """Call `on_report` with the key of a Subscription whose report changed."""
        self._manager = manager
        self._own = writers
        self._impersonated = Impersonated(manager, writers)
        self._csvs = csvs
        self._subscriptions = subscriptions
        self._groups = groups
        self._definitions = definitions
        self._reports = reports
        self._on_report = on_report
        self._namespaces = manager.objects(NAMESPACES)
        self._proxies = manager.objects(PROXIES, Selection(name="cluster", optional=True))
        self._kubernetes: Version | None = None
        self._finalizer = Finalizer(csvs, FINALIZER, self._clean_up)
        everywhere = self._everywhere
        watches = [
            Watch(csvs, self._with_related),
            Watch(subscriptions, self._of_subscription),
            Watch(groups, self._of_namespace),
            Watch(definitions, everywhere, _established_changed),
            Watch(self._namespaces, everywhere, _labels_changed),
            Watch(self._proxies, everywhere),
            *(Watch(kind, to_csv) for kind in writers.all),
        ]
        self.controller = Controller("csv", self._reconcile, watches, workers=8)
        manager.add(self.controller)
        self._config_maps = manager.named(CONFIG_MAPS, self.controller)
        self._secrets = manager.named(SECRETS, self.controller)
        self._required = manager.named(CRDS, self.controller)

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
        await self._write(self._csvs.get(key) or kept, found)
        again = found.phase in (Phase.FAILED, Phase.INSTALL_READY)
        return Result(requeue_after=RETRY_INTERVAL) if again else DONE

    def _replaced_by(self, csv: ClusterServiceVersion) -> ClusterServiceVersion | None:
        same = self._csvs.by_index("namespace", csv.metadata.namespace)
        newer = [
            one
            for one in same
            if one.metadata.annotations.get(REPLACES) == csv.metadata.name
            and one.metadata.deletion_timestamp is None
            and one.metadata.name != csv.metadata.name
        ]
        return newer[0] if newer else None

    async def _give_way(self, csv: ClusterServiceVersion, newer: ClusterServiceVersion) -> Result:
        self._reports.set(key_of(csv), None)
        if newer.status.phase == Phase.SUCCEEDED:
            await self._csvs.delete(csv)
            return DONE
        message = f"{newer.metadata.name} replaces it, and is not ready yet"
        await self._write(
            csv, PhaseResult(phase=Phase.REPLACING, reason="BeingReplaced", message=message)
        )
        return DONE

    async def _installed(self, csv: ClusterServiceVersion) -> PhaseResult | None:
        """The phase after everything was applied that can be; None if nothing can be decided."""
        target = self._target(csv)
        if isinstance(target, GroupFault):
            return PhaseResult(phase=Phase.FAILED, reason=target.reason, message=target.message)
        unread = self._required.watch(key_of(csv), self._names_of_definitions(csv))
        if unread:
            return None
        kubernetes = await self._kubernetes_version() if csv.spec.min_kube_version else None
        if missing := missing_requirements(csv, self._definition, kubernetes):
            return PhaseResult(
                phase=Phase.PENDING, reason="RequirementsNotMet", message="; ".join(missing)
            )
        if taken := self._taken(csv):
            return PhaseResult(
                phase=Phase.FAILED, reason="ComponentConflict", message="; ".join(taken)
            )
        try:
            await self._apply_rights(csv, target)
        except Conflict as error:
            if not isinstance(error, AlreadyExists):
                raise
            return _failed(error)
        except (Forbidden, Invalid, NotFound) as error:
            return _failed(error)
        return await self._apply_deployments(csv, target)

    def _target(self, csv: ClusterServiceVersion) -> Target | GroupFault:
        namespace = csv.metadata.namespace
        labels = {
            one["metadata"]["name"]: one["metadata"].get("labels") or {}
            for one in self._namespaces.all()
        }
        target = target_of(namespace, self._groups.by_index("namespace", namespace), labels)
        if isinstance(target, GroupFault):
            return target
        return mode_fault(target, csv.spec.install_modes) or target

    def _names_of_definitions(self, csv: ClusterServiceVersion) -> list[Key]:
        """The definitions that the operator needs and that we did not install."""
        kinds = csv.spec.customresourcedefinitions
        names = [Key("", one.name) for one in (*kinds.owned, *kinds.required)]
        return [name for name in names if self._definitions.get(name) is None]

    def _definition(self, name: str) -> Object | None:
        key = Key("", name)
        return self._definitions.get(key) or self._required.get(key)

    async def _kubernetes_version(self) -> Version | None:
        """The API server's version, asked for once."""
        if self._kubernetes is None:
            body = await self._manager.client.raw("/version")
            told = msgspec.json.decode(body, type=dict[str, str]).get("gitVersion", "")
            self._kubernetes = parse_version(told.removeprefix("v"))
        return self._kubernetes

    def _taken(self, csv: ClusterServiceVersion) -> list[str]:
        """The objects of this operator that belong to another one in the namespace."""
        mine = {
            key_of(csv),
            Key(csv.metadata.namespace, csv.metadata.annotations.get(REPLACES, "")),
        }
        namespace = csv.metadata.namespace
        wanted = [
            *((self._own.accounts, key_of(one)) for one in desired_accounts(csv)),
            *((self._own.deployments, Key(namespace, one.name)) for one in named_deployments(csv)),
        ]
        found = []
        for objects, key in wanted:
            live = objects.get(key)
            owner = owner_of(live) if live else None
            if owner and owner not in mine and self._csvs.get(owner) is not None:
                found.append(f"{objects.resource.kind} {key.name} belongs to {owner.name}")
        return found

    async def _apply_rights(self, csv: ClusterServiceVersion, target: Target) -> None:
        writers = self._impersonated.writers(target.namespace, target.account)
        rights = desired_roles(csv, target)
        ours = owned_selector(csv)
        for objects, own, wanted in (
            (writers.accounts, self._own.accounts, desired_accounts(csv)),
            (writers.roles, self._own.roles, rights.roles),
            (writers.bindings, self._own.bindings, rights.bindings),
            (writers.cluster_roles, self._own.cluster_roles, rights.cluster_roles),
            (writers.cluster_bindings, self._own.cluster_bindings, rights.cluster_bindings),
        ):
            for one in wanted:
                await objects.ensure(one)
            await own.prune([key_of(one) for one in wanted], ours)

    async def _apply_deployments(
        self, csv: ClusterServiceVersion, target: Target
    ) -> PhaseResult | None:
        key, deployments = key_of(csv), named_deployments(csv)
        subscription = self._subscription(csv)
        config = subscription.spec.config if subscription else ()
        if self._unread(key, config):
            return None
        writers = self._impersonated.writers(target.namespace, target.account)
        variables = proxy_variables(self._proxies.get(Key("", "cluster")))
        results = []
        for one in deployments:
            result = merged(one, config, variables, target.annotations)
            results.append(await self._apply_deployment(csv, result, config, writers))
        wanted = [Key(csv.metadata.namespace, one.name) for one in deployments]
        await self._own.deployments.prune(wanted, owned_selector(csv))
        if subscription is not None:
            report = ConfigReport(
                generation=subscription.metadata.generation,
                faults=tuple(fault for one in results for fault in one.faults),
                selector_faults=tuple(selector_faults(config, deployments)),
            )
            if self._reports.set(key, report):
                self._on_report(key_of(subscription))
        return phase_of_deployments(results)

    async def _apply_deployment(
        self,
        csv: ClusterServiceVersion,
        result: Merged,
        config: Sequence[ConfigEntry],
        writers: Writers,
    ) -> DeploymentResult:
        key = Key(csv.metadata.namespace, result.name)
        faults = config_faults(result, config, self._lookup(csv.metadata.namespace))
        refused: list[str] = []
        live = self._own.deployments.get(key)
        if not faults:
            try:
                live = await writers.deployments.ensure(desired_deployment(csv, result))
            except (Forbidden, Invalid, AlreadyExists) as error:
                if live is not None and any(one.field == "spec.selector" for one in error.causes):
                    # The selector cannot be changed: the watch wakes the key when it is gone.
                    await self._own.deployments.delete(live, propagation="Background")
                    return _waiting(result.name)
                causes = [(one.field, one.message) for one in error.causes]
                faults, refused = refused_entries(result, causes or [("", error.message)])
        return DeploymentResult(
            name=result.name,
            exists=live is not None,
            faults=tuple(faults),
            refused=tuple(refused),
            outcome=rollout.deployment(live) if live is not None else None,
        )

    def _subscription(self, csv: ClusterServiceVersion) -> Subscription | None:
        """The Subscription whose configuration counts; None if it is gone."""
        name = csv.metadata.annotations.get(SUBSCRIPTION)
        found = self._subscriptions.get(Key(csv.metadata.namespace, name)) if name else None
        return None if found is None or found.metadata.deletion_timestamp else found

    def _unread(self, key: Key, config: Sequence[ConfigEntry]) -> bool:
        """Watch what the config refers to; whether some of it is not read yet."""
        needed = [reference for entry in config for reference in references(entry)]
        names: Mapping[Kind, list[Key]] = {
            kind: [Key(key.namespace, one.name) for one in needed if one.kind == kind]
            for kind in ("ConfigMap", "Secret")
        }
        unread = self._config_maps.watch(key, names["ConfigMap"])
        return bool(self._secrets.watch(key, names["Secret"]) or unread)

    def _lookup(self, namespace: str) -> Callable[[Reference], str]:
        def find(kind: Kind, name: str) -> Object | None:
            objects = self._config_maps if kind == "ConfigMap" else self._secrets
            return objects.get(Key(namespace, name))

        return lambda reference: why_unresolved(reference, find)

    async def _write(self, csv: ClusterServiceVersion, result: PhaseResult) -> None:
        await self._csvs.set_status(csv, desired_status(csv, result, self._manager.now()))

    async def _clean_up(self, csv: ClusterServiceVersion) -> bool:
        """Delete what no owner reference covers: objects of the cluster and other namespaces."""
        ours = owned_selector(csv)
        for objects in (
            self._own.cluster_bindings,
            self._own.cluster_roles,
            self._own.bindings,
            self._own.roles,
        ):
            await objects.prune([], ours)
        return True

    def _forget(self, key: Key) -> None:
        self._config_maps.watch(key, [])
        self._secrets.watch(key, [])
        self._required.watch(key, [])
        self._reports.set(key, None)


def _failed(error: ApiError) -> PhaseResult:
    return PhaseResult(
        phase=Phase.FAILED, reason="InstallComponentFailed", message=error.message or str(error)
    )


def _waiting(name: str) -> DeploymentResult:
    message = "it is deleted and created again, because its selector changed"
    return DeploymentResult(
        name=name, exists=True, outcome=rollout.Waiting("DeploymentNotReady", message)
    )


def _established_changed(old: Object | None, new: Object | None) -> bool:
    if old is None or new is None:
        return True
    return rollout.definition(old) != rollout.definition(new)


def _labels_changed(old: Object | None, new: Object | None) -> bool:
    if old is None or new is None:
        return True
    return bool(old["metadata"].get("labels") != new["metadata"].get("labels"))
